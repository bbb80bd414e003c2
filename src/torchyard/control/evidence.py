"""Collects what a diagnosis needs: the tails of all logs, and whether a newer checkpoint is there."""

import asyncio
import shutil
from collections import deque

from torchyard.control import checkpoints, plans
from torchyard.control.yard import Yard
from torchyard.diagnosis.classify import classify
from torchyard.diagnosis.evidence import Evidence
from torchyard.domain.cause import Diagnosis
from torchyard.domain.errors import TorchyardError
from torchyard.domain.observation import LogLine, Observation
from torchyard.domain.workload import Attempt, Workload

TAIL_LINES = 2000
TAIL_BYTES = 512 * 1024


async def tail(yard: Yard, workload: Workload, attempt: Attempt, replica: str) -> tuple[LogLine, ...]:
    """The last lines of one replica."""
    assert attempt.handle is not None
    engine = yard.engine(workload.cluster)
    size = await engine.log_size(attempt.handle, replica)
    lines: deque[LogLine] = deque(maxlen=TAIL_LINES)
    async for line in engine.logs(attempt.handle, replica, max(0, size - TAIL_BYTES), follow=False):
        lines.append(line)
    return tuple(lines)


async def diagnose(yard: Yard, workload: Workload, observation: Observation) -> Diagnosis:
    """Why the attempt of now, which is over, ended."""
    attempt = workload.attempt
    assert attempt is not None
    return await asyncio.to_thread(classify, await collect(yard, workload, attempt, observation))


async def collect(yard: Yard, workload: Workload, attempt: Attempt, observation: Observation) -> Evidence:
    """Everything that is known of an attempt."""
    logs = {r.name: await tail(yard, workload, attempt, r.name) for r in observation.replicas}
    submission = workload.submission
    nproc = {name: max(1, submission.devices_of(name)) for name in submission.replicas}
    return Evidence(
        observation=observation,
        logs=logs,
        nproc=nproc,
        asked_to_end=attempt.ending.because if attempt.ending else None,
        trust_exit_code=submission.torchyard.trust_exit_code,
        port=observation.port,
        shm=await _shared_memory(yard, workload),
        free=await asyncio.to_thread(_tight, yard),
        commands={name: submission.replica_spec(name).command or "" for name in submission.replicas},
        pattern=submission.torchyard.progress.pattern if submission.torchyard.progress else None,
    )


async def _shared_memory(yard: Yard, workload: Workload) -> dict[str, int | None]:
    """Bytes of /dev/shm by replica; nothing when the plan cannot be made again."""
    try:
        return {replica.name: replica.shm for replica in (await plans.plan(yard, workload)).replicas}
    except TorchyardError:
        return {}


def _tight(yard: Yard) -> dict[str, int]:
    """Free bytes of the disk of the data folder, where logs and claims lie, if they are few."""
    free = shutil.disk_usage(yard.settings.data).free
    return {f"the disk of {yard.settings.data}": free} if free < yard.settings.disk_reserve_gb * 1e9 else {}


async def checkpointed(yard: Yard, workload: Workload) -> bool:
    """A complete checkpoint newer than the attempt's start is there."""
    attempt = workload.attempt
    assert attempt is not None
    found = await checkpoints.listing(yard, workload)
    return any(c.complete and c.modified_at > attempt.created_at for c in found)
