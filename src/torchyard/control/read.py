"""Looks things up for the API: workloads, their attempts, events and progress."""

import asyncio
from collections.abc import Sequence

from torchyard.control.yard import Yard
from torchyard.domain.cause import Cause
from torchyard.domain.errors import NotFound
from torchyard.domain.event import Event
from torchyard.domain.workload import Attempt, Phase, Progress, Workload
from torchyard.store import attempts, events, workloads
from torchyard.store.database import read

STOPPED_EXIT = 130
OURS_EXIT = 125


async def get(yard: Yard, workload_id: str) -> Workload:
    """One workload. Raises NotFound."""

    def fetch() -> Workload | None:
        with read(yard.database) as connection:
            return workloads.fetch(connection, workload_id)

    workload = yard.board.get(workload_id) or await asyncio.to_thread(fetch)
    if workload is None:
        raise NotFound(f"there is no workload {workload_id}", "see `torchyard list`")
    return yard.board.of_now(workload)


async def attempts_of(yard: Yard, workload_id: str) -> tuple[Attempt, ...]:
    """All attempts, the first one first."""

    def fetch() -> tuple[Attempt, ...]:
        with read(yard.database) as connection:
            return attempts.listing(connection, workload_id)

    return await asyncio.to_thread(fetch)


async def events_of(
    yard: Yard, workload_id: str, offset: int, limit: int, newest_first: bool
) -> tuple[tuple[int, Event], ...]:
    """Events with their numbers."""

    def fetch() -> tuple[tuple[int, Event], ...]:
        with read(yard.database) as connection:
            return events.listing(connection, workload_id, offset=offset, limit=limit, newest_first=newest_first)

    return await asyncio.to_thread(fetch)


async def progress_of(yard: Yard, workload_ids: Sequence[str]) -> dict[str, Progress]:
    """The last known progress of each."""

    def fetch() -> dict[str, Progress]:
        with read(yard.database) as connection:
            return workloads.progress(connection, workload_ids)

    return await asyncio.to_thread(fetch)


def exit_code(workload: Workload) -> int | None:
    """What `run` and `wait` end with; None while it has not ended."""
    match workload.phase:
        case Phase.COMPLETED:
            return 0
        case Phase.STOPPED:
            return STOPPED_EXIT
        case Phase.FAILED:
            diagnosis = workload.attempt.diagnosis if workload.attempt else None
            if diagnosis is None or diagnosis.cause is Cause.START:
                return OURS_EXIT
            fault = diagnosis.fault
            if fault is None or diagnosis.cause is Cause.MASKED_EXIT:
                return 1
            if fault.signal is not None:
                return 128 + fault.signal
            return fault.code or 1
        case _:
            return None
