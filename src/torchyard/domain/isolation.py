"""How far a local replica is kept from the machine: chosen from the spec alone. Knows nothing of what can run here."""

from collections.abc import Iterator
from dataclasses import dataclass

from torchyard.domain.spec import Isolation, ReplicaSpec, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An isolation and the reason for it, one sentence.

    `folder_exists`: the spec's working folder is on this machine.
    """

    isolation: Isolation
    why: str
    folder_exists: bool = False


def choose(submission: Submission, *, folder_exists: bool) -> Choice:
    """The isolation of a submission, in this order: asked for; an image; a mount or a foreign folder; none."""
    asked = submission.torchyard.isolation
    if asked is not None:
        return Choice(isolation=asked, why=f"isolation {asked.value}: asked for", folder_exists=folder_exists)
    isolation, because = _by_need(submission, folder_exists)
    return Choice(isolation=isolation, why=f"isolation {isolation.value}: {because}", folder_exists=folder_exists)


def _by_need(submission: Submission, folder_exists: bool) -> tuple[Isolation, str]:
    specs = specs_of(submission)
    image = next((spec.image for spec in specs if spec.image), None)
    if image and submission.torchyard.code is None:
        return Isolation.CONTAINER, f"the spec names the image {image[:100]} and no code of its own"
    mount = next((path for spec in specs for path in mount_paths(spec)), None)
    if mount:
        return Isolation.SANDBOX, f"storage is mounted at {mount[:100]}"
    folder = submission.spec.working_dir
    if folder and folder.startswith("/") and not folder_exists:
        return Isolation.SANDBOX, f"the working folder {folder[:100]} is not on this machine"
    return Isolation.PROCESS, "nothing is mounted and no image is needed"


def specs_of(submission: Submission) -> tuple[ReplicaSpec, ...]:
    """The specs that the replicas have, each once: the master's own, and the workers'."""
    own = submission.master_spec if submission.has_master else None
    if own is None:
        return (submission.spec,)
    return (own, submission.spec) if len(submission.replicas) > 1 else (own,)


def mount_paths(spec: ReplicaSpec) -> Iterator[str]:
    """Where storage is mounted. Excluded claims are not there."""
    yield from (pvc.path for pvc in spec.storage.pvc if not pvc.exclude)
    yield from (volume.path for volume in spec.storage.empty_dir_volume)
