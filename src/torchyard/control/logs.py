"""Serves logs where they lie: the replicas of an attempt in the order of time, from any position, followed if asked."""

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from torchyard.control import read
from torchyard.control.yard import Yard
from torchyard.domain.errors import Invalid, NotFound
from torchyard.domain.observation import LogLine
from torchyard.domain.workload import Attempt, Workload

TAIL_WINDOW = 256 * 1024
ALL_ATTEMPTS = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which lines. `attempt` None: the last one, and with `follow` those that come after it; 0: from the first on."""

    attempt: int | None = None
    replica: str | None = None
    rank: int | None = None
    since: datetime | None = None
    tail: int | None = None
    follow: bool = False
    after: str | None = None
    """A cursor: only lines behind it."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position: an attempt, and for each replica the byte behind the last line that was read."""

    attempt: int
    offsets: dict[str, int]

    def __str__(self) -> str:
        return f"{self.attempt}:" + ",".join(f"{name}={at}" for name, at in self.offsets.items())

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Raises Invalid when the text is no cursor."""
        try:
            attempt, _, rest = text.partition(":")
            pairs = (part.partition("=") for part in rest.split(",") if part)
            return cls(int(attempt), {name: int(at) for name, _, at in pairs})
        except ValueError as problem:
            raise Invalid(f"{text[:60]!r} is no log cursor", "use the id of a line as it was sent") from problem


async def lines(yard: Yard, workload_id: str, query: LogQuery) -> AsyncIterator[tuple[str, LogLine]]:
    """(cursor, line) in order. With `follow` it ends when the workload has ended and everything was read."""
    workload = await read.get(yard, workload_id)
    if query.replica is not None and query.replica not in workload.submission.replicas:
        raise NotFound(
            f"{workload.name} has no replica {query.replica!r}", f"replicas: {', '.join(workload.submission.replicas)}"
        )
    cursor = Cursor.parse(query.after) if query.after else None
    number = cursor.attempt if cursor else query.attempt
    if number is None:
        number = workload.attempts
    elif number > workload.attempts and not query.follow:
        raise NotFound(f"{workload.name} has no attempt {number}", f"it has had {workload.attempts}")
    number = max(1, number)
    with yard.feed.subscribe(workload_id) as changes:
        while True:
            attempt = await _attempt(yard, workload_id, number)
            if attempt is not None and attempt.handle is not None:
                async for item in _attempt_lines(yard, workload, attempt, query, cursor):
                    yield item
            cursor = None
            workload = await read.get(yard, workload_id)
            if number < workload.attempts and (query.follow or query.attempt == ALL_ATTEMPTS):
                if query.attempt not in (None, ALL_ATTEMPTS):
                    return
                number += 1
                query = replace(query, tail=None)
            elif not query.follow or workload.settled or (query.attempt or number) < workload.attempts:
                return
            else:
                await changes.next(timeout=0.5)
                if attempt is not None and attempt.handle is not None:
                    cursor = await _end_of(yard, workload, attempt)


async def _attempt(yard: Yard, workload_id: str, number: int) -> Attempt | None:
    known = yard.board.get(workload_id)
    if known is not None and known.attempt is not None and known.attempt.number == number:
        return known.attempt
    return next((a for a in await read.attempts_of(yard, workload_id) if a.number == number), None)


async def _end_of(yard: Yard, workload: Workload, attempt: Attempt) -> Cursor:
    assert attempt.handle is not None
    engine = yard.engine(workload.cluster)
    handle = attempt.handle
    return Cursor(attempt.number, {r: await engine.log_size(handle, r) for r in workload.submission.replicas})


async def _attempt_lines(
    yard: Yard, workload: Workload, attempt: Attempt, query: LogQuery, cursor: Cursor | None
) -> AsyncIterator[tuple[str, LogLine]]:
    """What the attempt's log holds now, then, with `follow`, what it gets until its replicas are over."""
    assert attempt.handle is not None
    engine = yard.engine(workload.cluster)
    replicas = (query.replica,) if query.replica else workload.submission.replicas
    offsets = dict(cursor.offsets) if cursor else {}
    sizes = {name: await engine.log_size(attempt.handle, name) for name in replicas}
    backlog = [
        await _stored(yard, workload, attempt, name, offsets.get(name, 0), sizes[name], query) for name in replicas
    ]
    merged: Iterable[LogLine] = heapq.merge(*backlog, key=lambda line: line.at)
    if query.tail is not None:
        merged = deque(merged, maxlen=query.tail)
    for line in merged:
        offsets[line.replica] = line.cursor
        yield str(Cursor(attempt.number, offsets)), replace(line, attempt=attempt.number)
    for name in replicas:
        offsets[name] = max(offsets.get(name, 0), sizes[name])
    if query.follow:
        async for line in _live(yard, workload, attempt, replicas, offsets):
            offsets[line.replica] = line.cursor
            if _wanted(line, query):
                yield str(Cursor(attempt.number, offsets)), replace(line, attempt=attempt.number)


async def _stored(
    yard: Yard, workload: Workload, attempt: Attempt, replica: str, start: int, size: int, query: LogQuery
) -> list[LogLine]:
    assert attempt.handle is not None
    engine = yard.engine(workload.cluster)
    window = TAIL_WINDOW
    while True:
        begin = max(start, size - window) if query.tail is not None else start
        found = [
            line
            async for line in engine.logs(attempt.handle, replica, begin, follow=False)
            if line.cursor <= size and _wanted(line, query)
        ]
        if query.tail is None or begin == start or len(found) > query.tail:
            return found
        window *= 4


async def _live(
    yard: Yard, workload: Workload, attempt: Attempt, replicas: tuple[str, ...], offsets: dict[str, int]
) -> AsyncIterator[LogLine]:
    """Lines of all replicas as they come, until every replica is over."""
    assert attempt.handle is not None
    engine, handle = yard.engine(workload.cluster), attempt.handle
    arrived: asyncio.Queue[LogLine | None] = asyncio.Queue(maxsize=1000)

    async def pump(replica: str) -> None:
        try:
            async for line in engine.logs(handle, replica, offsets.get(replica, 0), follow=True):
                await arrived.put(line)
        finally:
            await arrived.put(None)

    pumps = [asyncio.create_task(pump(name)) for name in replicas]
    try:
        left = len(pumps)
        while left:
            line = await arrived.get()
            if line is None:
                left -= 1
            else:
                yield line
        await asyncio.gather(*pumps)
    finally:
        for task in pumps:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*pumps, return_exceptions=True)


def _wanted(line: LogLine, query: LogQuery) -> bool:
    return (query.rank is None or line.rank == query.rank) and (query.since is None or line.at >= query.since)
