"""From a remembered workload to what the engine is told: the launch plan, and the environment that is kept sealed."""

import asyncio
import json
import os
import posixpath

from sqlalchemy import Connection

from torchyard.control.yard import Yard
from torchyard.domain.errors import Invalid, NotFound
from torchyard.domain.isolation import specs_of
from torchyard.domain.launch import DEFAULT_CHECKPOINT, LaunchPlan, ResumeSource
from torchyard.domain.spec import Isolation, Submission
from torchyard.domain.workload import DRAFT_ID, Workload
from torchyard.engines.engine import Engine, Secrets
from torchyard.render.isolation import pick
from torchyard.render.launch import plan as render_plan
from torchyard.store import sealed, workloads
from torchyard.store.database import read, write


async def plan(yard: Yard, workload: Workload) -> LaunchPlan:
    """The plan of the workload's present attempt. The same workload gives the same plan."""
    assert workload.attempt is not None
    return await draft(yard, workload.submission, workload.resume, workload.id, workload.attempt.number)


async def draft(
    yard: Yard,
    submission: Submission,
    source: ResumeSource | None = None,
    workload_id: str = DRAFT_ID,
    attempt: int = 1,
) -> LaunchPlan:
    """The plan that a submission gives. Raises Invalid when it gives none."""
    engine = yard.engine(submission.cluster)
    folder = submission.spec.working_dir
    exists = await asyncio.to_thread(lambda: bool(folder and os.path.isdir(folder)))  # noqa: PTH112
    choice = pick(submission, engine.capabilities, folder_exists=exists)
    return render_plan(
        submission,
        workload_id=workload_id,
        attempt=attempt,
        choice=choice,
        resume=source,
        node_share=await _node_share(engine, submission, choice.isolation),
    )


async def _node_share(engine: Engine, submission: Submission, isolation: Isolation) -> int | None:
    """The part of a node's memory that falls to one replica, all of them on one node; None when nobody asks for it."""
    computes = [spec.compute for spec in specs_of(submission)]
    wanted = any(compute.large_shm_request and not compute.cpu_memory_limit for compute in computes)
    if isolation is Isolation.PROCESS or not wanted:
        return None
    smallest = min((node.memory for node in await engine.nodes()), default=0)
    return smallest // len(submission.replicas) if submission.replicas else None


def resume_source(yard: Yard, submission: Submission) -> ResumeSource | None:
    """Where the checkpoint lies that this submission continues from. Raises Invalid when it cannot be found."""
    with read(yard.database) as connection:
        return resume_of(connection, submission)


def resume_of(connection: Connection, submission: Submission) -> ResumeSource | None:
    """The same, in a transaction that is open."""
    if submission.torchyard.resume_from is None:
        return None
    name, _, file = submission.torchyard.resume_from.partition(":")
    other = workloads.find(connection, submission.project, name)
    if other is None:
        raise Invalid(
            f"resumeFrom: there is no workload {name!r} in project {submission.project}", "see `torchyard list`"
        )
    mounts = [pvc for spec in specs_of(other.submission) for pvc in spec.storage.pvc if pvc.claim_name]
    if not mounts:
        raise Invalid(f"resumeFrom: {name} has no claim to take a checkpoint from", "mount one with --existing-pvc")
    file = file or DEFAULT_CHECKPOINT
    chosen = (
        next((m for m in mounts if posixpath.commonpath([m.path, file]) == m.path), mounts[0])
        if file[:1] == "/"
        else mounts[0]
    )
    inside = posixpath.relpath(file, chosen.path) if file.startswith("/") else file
    if inside.startswith(".."):
        raise Invalid(f"resumeFrom: {file} is on none of the claims of {name}", "give a path inside a mounted claim")
    assert chosen.claim_name is not None
    return ResumeSource(claim=chosen.claim_name, path=inside, mount_path=chosen.path)


def seal(yard: Yard, workload_id: str, caller: dict[str, str], named: dict[str, dict[str, str]]) -> bytes:
    """The caller's environment and each spec's secret variables, readable with this server's key only."""
    text = json.dumps({"caller": caller, "named": named})
    return yard.sealer.seal(text.encode(), context=workload_id)


def secrets(yard: Yard, workload: Workload) -> Secrets:
    """The sealed environment of a workload."""
    if not workload.sealed:
        return Secrets()
    with read(yard.database) as connection:
        blob = sealed.fetch(connection, workload.id)
    if blob is None:
        raise NotFound(f"the sealed environment of {workload.name} is missing")
    kept = json.loads(yard.sealer.open(blob, context=workload.id))
    submission = workload.submission
    named = {name: kept["named"].get(submission.replica_field(name), {}) for name in submission.replicas}
    return Secrets(caller=kept["caller"], named=named)


def forget_secrets(yard: Yard, workload: Workload) -> None:
    """Its sealed environment goes when the workload does."""
    with write(yard.database) as connection:
        sealed.remove(connection, workload.id)
