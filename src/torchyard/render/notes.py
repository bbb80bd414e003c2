"""Sentences that become the first events of a workload: what was chosen and why, and what is not honoured."""

from collections.abc import Iterator

from torchyard.domain.isolation import Choice, mount_paths, specs_of
from torchyard.domain.spec import Isolation, ReplicaSpec, Submission
from torchyard.render.rendezvous import IDENTITY
from torchyard.render.shm import DEV_SHM, shared_memory
from torchyard.render.volumes import volume_variable


def notes_of(submission: Submission, choice: Choice, node_share: int | None = None) -> tuple[str, ...]:
    """Each sentence once, in reading order."""
    said = [choice.why]
    for spec in specs_of(submission):
        said.extend(_unhonoured(submission, spec, choice))
        said.append(shared_memory(spec, choice.isolation, node_share)[1])
        said.extend(_reserved(spec))
    said.extend(_group(submission))
    return tuple(dict.fromkeys(said))


def _unhonoured(submission: Submission, spec: ReplicaSpec, choice: Choice) -> Iterator[str]:
    if spec.image and choice.isolation is not Isolation.CONTAINER:
        yield f"isolation {choice.isolation.value}: the image {spec.image[:100]} is not used, this machine's files are"
    if choice.isolation is not Isolation.PROCESS:
        return
    for pvc in spec.storage.pvc:
        if pvc.claim_name and not pvc.exclude:
            yield (
                f"isolation process: {pvc.claim_name} is not mounted at {pvc.path[:100]}; "
                f"${volume_variable(pvc.claim_name)} says where it is"
            )
    claims = {pvc.path for pvc in spec.storage.pvc}
    for path in mount_paths(spec):
        if path not in claims and path.rstrip("/") != DEV_SHM:
            yield f"isolation process: there is no empty volume at {path[:100]}"
    folder = spec.working_dir or ""
    if folder.startswith("/") and submission.torchyard.code is not None:
        yield f"isolation process: the command starts in its copy of the code, not in {folder[:100]}"
    elif folder.startswith("/") and not choice.folder_exists and folder == submission.spec.working_dir:
        yield f"isolation process: {folder[:100]} is not on this machine; the command starts in an empty folder"


def _reserved(spec: ReplicaSpec) -> Iterator[str]:
    for variable in spec.environment_variables:
        if variable.name in IDENTITY:
            yield f"the variable {variable.name} is torchyard's own; the spec's value is not used"


def _group(submission: Submission) -> Iterator[str]:
    spec = submission.spec
    if spec.min_replicas is not None or spec.max_replicas is not None:
        yield f"minReplicas and maxReplicas: every attempt has the full size of {len(submission.replicas)} replicas"
    if submission.torchyard.code is not None and spec.backoff_limit:
        yield "each attempt starts from a fresh copy of the code: checkpoints that are to last belong on a claim"
