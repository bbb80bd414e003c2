"""One writer at a time for each workload: a turn reads it, decides, and writes once under a fencing lease."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from torchyard.control.yard import Yard
from torchyard.domain.decision import Decision, Seen
from torchyard.domain.errors import Conflict, NotFound, Unavailable
from torchyard.domain.lifecycle import decide
from torchyard.domain.workload import Workload
from torchyard.store import attempts, events, workloads
from torchyard.store.database import read, write

LEASE_SECONDS = 60.0


class LeaseLost(Conflict):
    """Another server works on this workload now; what was decided here is dropped."""


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Turn:
    """The right to change one workload. `workload` is always as last saved."""

    def __init__(self, yard: Yard, workload: Workload) -> None:
        self._yard = yard
        self.workload = workload

    async def apply(self, seen: Seen) -> Decision:
        """Decide and write once. Raises LeaseLost, Unavailable (disk full, store away)."""
        before, moment = self.workload, now()
        decision = decide(before, seen, moment)
        if decision.workload != before or decision.events:
            try:
                await asyncio.to_thread(self._save, before, decision, moment)
            except Unavailable as trouble:
                self._unwritten(trouble.whole)
                raise
            self.workload = decision.workload
            self._publish(before, decision)
        self._unwritten(None)
        return decision

    def _unwritten(self, why: str | None) -> None:
        known = self._yard.board.unwritten
        if known.get(self.workload.id) == why:
            return
        if why is None:
            del known[self.workload.id]
        else:
            known[self.workload.id] = why
        self._yard.feed.publish(self.workload.id, "workload")

    def _save(self, before: Workload, decision: Decision, moment: datetime) -> None:
        after = decision.workload
        with write(self._yard.database) as connection:
            lease = workloads.lease(connection, after.id, self._yard.holder, moment, LEASE_SECONDS)
            if lease is None or not workloads.save(connection, after, lease, moment):
                raise LeaseLost(f"another server works on {after.name}")
            if after.attempt is not None and after.attempt != before.attempt:
                attempts.save(connection, after.id, after.attempt)
            if decision.events:
                events.append(connection, after.id, decision.events)

    def _publish(self, before: Workload, decision: Decision) -> None:
        after = decision.workload
        self._yard.board.put(after)
        if before.active and not after.active:
            self._yard.board.end(after)
        self._yard.feed.publish(after.id, "deleted" if after.deleted_at else "workload")
        if decision.events:
            self._yard.feed.publish(after.id, "event")
        if after.waiting or before.active != after.active:
            self._yard.bell.queue.set()


@asynccontextmanager
async def turn(yard: Yard, workload_id: str) -> AsyncIterator[Turn]:
    """Wait for this workload's turn. Raises NotFound when there is no such workload."""
    async with yard.lock(workload_id):
        workload = yard.board.get(workload_id) or await asyncio.to_thread(_fetch, yard, workload_id)
        if workload is None:
            raise NotFound(f"there is no workload {workload_id}")
        yield Turn(yard, workload)


def _fetch(yard: Yard, workload_id: str) -> Workload | None:
    with read(yard.database) as connection:
        return workloads.fetch(connection, workload_id)
