"""The loop: wakes for changes, bells and deadlines, and lets a few workloads at a time be reconciled."""

import asyncio
import heapq
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from torchyard.control import progress
from torchyard.control.housekeeping import keep_house
from torchyard.control.queue import schedule
from torchyard.control.reconcile import reconcile
from torchyard.control.turn import now
from torchyard.control.yard import Yard
from torchyard.domain.errors import Unavailable
from torchyard.domain.workload import Workload
from torchyard.store import workloads
from torchyard.store.database import read

SWEEP_SECONDS = 10.0
"""Every active workload is looked at this often, whatever woke us or failed to."""
HANDS = 8
"""Workloads that are reconciled at once."""
MAX_BACKOFF = 30.0

log = logging.getLogger("torchyard.loop")


async def run(yard: Yard) -> None:
    """Work until cancelled. What runs goes on without us."""
    for workload in await asyncio.to_thread(_live, yard):
        yard.board.put(workload)
        yard.bell.ring(workload.id)
    yard.bell.queue.set()
    async with asyncio.TaskGroup() as group:
        for cluster in yard.engines:
            group.create_task(_for_ever(f"the watch of {cluster}", partial(_listen, yard, cluster)))
        group.create_task(_queue(yard))
        group.create_task(_for_ever("progress", partial(progress.follow, yard)))
        group.create_task(_for_ever("housekeeping", partial(keep_house, yard)))
        group.create_task(_Loop(yard).work(group))


def _live(yard: Yard) -> tuple[Workload, ...]:
    with read(yard.database) as connection:
        return workloads.live(connection)


def _backoff(first: float, failures: int) -> float:
    return min(MAX_BACKOFF, first * 2.0 ** min(failures, 30))


async def _for_ever(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """Whatever goes wrong in there must not end the server."""
    failures = 0
    while True:
        begun = time.monotonic()
        try:
            await work()
        except Exception:
            failures = failures + 1 if time.monotonic() - begun < MAX_BACKOFF else 1
            log.exception("%s failed; going on", what)
        await asyncio.sleep(_backoff(0.5, failures))


def _report(trouble: Exception, what: str) -> None:
    """What was foreseen is a line; what was not, a trace."""
    if isinstance(trouble, Unavailable):
        log.warning("%s: %s", what, trouble.whole)
    else:
        log.error("%s", what, exc_info=trouble)


async def _listen(yard: Yard, cluster: str) -> None:
    """Ring the bell for every change that an engine reports."""
    async for key in yard.engines[cluster].changes():
        yard.bell.ring(key.rpartition("-")[0])


async def _queue(yard: Yard) -> None:
    failures = 0
    while True:
        await yard.bell.queue.wait()
        yard.bell.queue.clear()
        try:
            await schedule(yard)
            failures = 0
        except Exception as trouble:
            failures += 1
            _report(trouble, "the queue could not be worked on; trying again")
            await asyncio.sleep(_backoff(0.5, failures))
            yard.bell.queue.set()


class _Loop:
    """Which workloads are in hand, and when to look at others again."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._hands = asyncio.Semaphore(HANDS)
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}
        self._due: dict[str, datetime] = {}
        self._timers: list[tuple[datetime, str]] = []

    async def work(self, group: asyncio.TaskGroup) -> None:
        sweep = now() + timedelta(seconds=SWEEP_SECONDS)
        while True:
            for workload_id in self._yard.bell.take():
                self._begin(group, workload_id)
            moment = now()
            if moment >= sweep or sweep - moment > timedelta(seconds=2 * SWEEP_SECONDS):
                sweep = moment + timedelta(seconds=SWEEP_SECONDS)
                for workload in self._yard.board.all():
                    if not workload.waiting:
                        self._begin(group, workload.id)
                self._yard.bell.queue.set()
            while self._timers and self._timers[0][0] <= moment:
                when, workload_id = heapq.heappop(self._timers)
                if self._due.get(workload_id) == when:
                    del self._due[workload_id]
                    self._begin(group, workload_id)
                    self._yard.bell.queue.set()
            until = min(sweep, self._timers[0][0]) if self._timers else sweep
            seconds = max(0.0, (until - now()).total_seconds())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._yard.bell.rung.wait(), min(seconds, SWEEP_SECONDS))

    def _begin(self, group: asyncio.TaskGroup, workload_id: str) -> None:
        if workload_id in self._busy:
            self._again.add(workload_id)
        else:
            self._busy.add(workload_id)
            group.create_task(self._one(workload_id))

    async def _one(self, workload_id: str) -> None:
        try:
            async with self._hands:
                wake = await self._reconcile(workload_id)
        finally:
            self._busy.discard(workload_id)
        if wake is not None and self._due.get(workload_id) != wake:
            self._due[workload_id] = wake
            heapq.heappush(self._timers, (wake, workload_id))
            self._yard.bell.rung.set()
        if workload_id in self._again:
            self._again.discard(workload_id)
            self._yard.bell.ring(workload_id)

    async def _reconcile(self, workload_id: str) -> datetime | None:
        """When to look again at the latest."""
        try:
            decision = await reconcile(self._yard, workload_id)
        except Exception as trouble:
            failures = self._failures[workload_id] = self._failures.get(workload_id, 0) + 1
            _report(trouble, f"workload {workload_id} could not be worked on ({failures} times); trying again")
            return now() + timedelta(seconds=_backoff(0.25, failures))
        self._failures.pop(workload_id, None)
        return decision.wake_at if decision else None
