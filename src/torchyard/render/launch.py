"""The launch plan of one attempt: replicas, commands, environment. The same submission gives the same plan."""

import posixpath
from itertools import groupby

from torchyard.domain.command import argv_of
from torchyard.domain.errors import Invalid, Problem
from torchyard.domain.isolation import Choice
from torchyard.domain.launch import LaunchPlan, ReplicaPlan, ResumeSource
from torchyard.domain.spec import Isolation, ReplicaSpec, Submission
from torchyard.render import rendezvous
from torchyard.render.notes import notes_of
from torchyard.render.shm import shared_memory
from torchyard.render.volumes import mounts_of, scratch_of, volume_variables


def plan(
    submission: Submission,
    *,
    workload_id: str,
    attempt: int,
    choice: Choice,
    resume: ResumeSource | None = None,
    node_share: int | None = None,
) -> LaunchPlan:
    """What an engine is told. Raises Invalid when there is no command, or no replica."""
    if not submission.replicas:
        what = "numWorkers is 0 and there is no master: nothing would run"
        raise Invalid(what, "ask for one worker at least", (Problem("spec.numWorkers", what, "min"),))
    replicas = tuple(
        _replica(submission, name, workload_id, attempt, choice, resume, node_share) for name in submission.replicas
    )
    return LaunchPlan(
        key=f"{workload_id}-{attempt}",
        workload_id=workload_id,
        workload=rendezvous.name_of(submission),
        project=submission.project,
        attempt=attempt,
        isolation=choice.isolation,
        replicas=replicas,
        code=submission.torchyard.code,
        grace=submission.grace,
        notes=notes_of(submission, choice, node_share),
    )


def world(submission: Submission) -> str:
    """`2 replicas x 4 devices = 8 ranks`"""
    sizes = [submission.devices_of(replica) for replica in submission.replicas]
    parts = [f"{_count(len(list(same)), 'replica')} x {_devices(size)}" for size, same in groupby(sizes)]
    ranks = sum(max(1, size) for size in sizes)
    return f"{' + '.join(parts) or 'no replica'} = {_count(ranks, 'rank')}"


def _devices(size: int) -> str:
    return _count(size, "device") if size else "no device"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _replica(
    submission: Submission,
    name: str,
    workload_id: str,
    attempt: int,
    choice: Choice,
    resume: ResumeSource | None,
    node_share: int | None,
) -> ReplicaPlan:
    spec = submission.replica_spec(name)
    field = submission.replica_field(name)
    argv = _command(spec, field, choice.isolation)
    mounts = mounts_of(spec, resume)
    process = choice.isolation is Isolation.PROCESS
    container = choice.isolation is Isolation.CONTAINER
    env = {
        "PYTHONUNBUFFERED": "1",
        **rendezvous.rendezvous(submission, name, argv, attempt, submission.grace),
        **rendezvous.identity(submission, name, workload_id, attempt),
        **volume_variables(mounts, resume),
        **rendezvous.spec_variables(submission, name, spec),
    }
    return ReplicaPlan(
        name=name,
        node_rank=submission.replicas.index(name),
        argv=argv,
        env=env,
        nproc=rendezvous.ranks_of(submission, name),
        devices=submission.devices_of(name),
        workdir=_workdir(submission, spec, field, choice),
        mounts=mounts,
        scratch=() if process else scratch_of(spec),
        shm=shared_memory(spec, choice.isolation, node_share)[0],
        image=spec.image if container else None,
        pull=spec.image_pull_policy if container else None,
        by_image=container and spec.command is None,
    )


def _command(spec: ReplicaSpec, field: str, isolation: Isolation) -> tuple[str, ...]:
    """In a container an image may know by itself what to run, and `args` alone are for its entry point."""
    argv = argv_of(spec, field)
    by_image = isolation is Isolation.CONTAINER and spec.command is None
    if not by_image and (spec.command is None or not argv or not argv[0].strip()):
        what = "say what to run"
        raise Invalid(
            f"{field}.command: {what}",
            "set spec.command, such as `bash run.sh`, or give the command after `--`",
            (Problem(f"{field}.command", what, "required"),),
        )
    return argv


def _workdir(submission: Submission, spec: ReplicaSpec, field: str, choice: Choice) -> str | None:
    """Absolute, or relative to the code's own folder; None is that folder itself."""
    folder = spec.working_dir
    if not folder:
        return None
    clean = posixpath.normpath(folder)
    if clean == ".":
        return None
    if not clean.startswith("/"):
        if clean.split("/")[0] == "..":
            what = f"{folder[:100]} leads out of the code's folder"
            raise Invalid(f"{field}.workingDir: {what}", None, (Problem(f"{field}.workingDir", what),))
        return clean
    if choice.isolation is not Isolation.PROCESS:
        return clean
    here = choice.folder_exists or folder != submission.spec.working_dir
    return clean if here and submission.torchyard.code is None else None
