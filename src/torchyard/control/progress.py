"""Reads progress from the logs of what runs, with no help from the script. Holds nothing that cannot be read again."""

import asyncio
import logging
from dataclasses import dataclass

from torchyard.control.turn import now, turn
from torchyard.control.yard import Yard
from torchyard.diagnosis.progress import Reader
from torchyard.domain.decision import Stepped
from torchyard.domain.errors import NotFound, TorchyardError, Unavailable
from torchyard.domain.workload import Attempt, Progress, Workload
from torchyard.store import workloads
from torchyard.store.database import write

INTERVAL = 1.0
LOOK_BACK = 64 * 1024
"""Bytes that are read again after a restart of the server."""

log = logging.getLogger("torchyard.progress")


@dataclass(slots=True)
class Follower:
    """How far the log of a workload's attempt was read."""

    attempt: int
    position: int
    reader: Reader
    saved: Progress | None = None


async def follow(yard: Yard) -> None:
    """Until cancelled, once a second: read what the logs have got since."""
    followers: dict[str, Follower] = {}
    while True:
        await asyncio.sleep(INTERVAL)
        await look(yard, followers)


async def look(yard: Yard, followers: dict[str, Follower]) -> None:
    """Read once more what has ended since the last look, and read on what runs."""
    for workload in yard.board.take_ended():
        await _try(yard, workload, followers)
        followers.pop(workload.id, None)
    running = [w for w in yard.board.all() if w.active and w.attempt and w.attempt.running_at]
    for workload in running:
        await _try(yard, workload, followers)
    for gone in followers.keys() - {w.id for w in running}:
        del followers[gone]


async def _try(yard: Yard, workload: Workload, followers: dict[str, Follower]) -> None:
    try:
        await read_on(yard, workload, followers)
    except FileNotFoundError:
        # It was deleted with its log.
        return
    except Unavailable as trouble:
        log.warning("progress of %s could not be read: %s", workload.name, trouble.whole)
    except (TorchyardError, OSError):
        log.exception("progress of %s could not be read", workload.name)


async def read_on(yard: Yard, workload: Workload, followers: dict[str, Follower]) -> None:
    """Read one workload's log from where it was left."""
    attempt = workload.attempt
    if attempt is None or attempt.handle is None:
        return
    engine = yard.engine(workload.cluster)
    replica = workload.submission.replicas[0]
    size = await engine.log_size(attempt.handle, replica)
    follower = followers.get(workload.id)
    if follower is None or follower.attempt != attempt.number:
        start = max(0, size - LOOK_BACK) if attempt.start_step is not None else 0
        follower = followers[workload.id] = Follower(attempt.number, start, _reader(workload))
    if size <= follower.position:
        return
    async for line in engine.logs(attempt.handle, replica, follower.position, follow=False):
        follower.reader.read(line)
        follower.position = line.cursor
    await _keep(yard, workload, attempt, follower)


def _reader(workload: Workload) -> Reader:
    asked = workload.submission.torchyard.progress
    return Reader(total=asked.total if asked else None, pattern=asked.pattern if asked else None)


async def _keep(yard: Yard, workload: Workload, attempt: Attempt, follower: Follower) -> None:
    progress = follower.reader.progress(attempt.number, now())
    if progress is None or progress == follower.saved:
        return
    follower.saved = progress
    await asyncio.to_thread(_save, yard, workload.id, progress)
    yard.feed.publish(workload.id, "progress")
    if attempt.start_step is None and follower.reader.first_step is not None:
        first = Progress(step=follower.reader.first_step, unit=progress.unit, attempt=attempt.number)
        try:
            async with turn(yard, workload.id) as mine:
                await mine.apply(Stepped(attempt=attempt.number, progress=first))
        except NotFound:
            return


def _save(yard: Yard, workload_id: str, progress: Progress) -> None:
    with write(yard.database) as connection:
        workloads.save_progress(connection, workload_id, progress)
