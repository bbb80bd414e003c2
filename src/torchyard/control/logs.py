"""Serves logs where they lie: the replicas of an attempt in the order of time, from any position, followed if asked."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from torchyard.control import read
from torchyard.control.yard import Yard
from torchyard.domain.errors import Invalid, NotFound
from torchyard.domain.observation import LogLine
from torchyard.domain.workload import Attempt, Workload

TAIL_WINDOW = 256 * 1024
ALL_ATTEMPTS = 0
MAX_OFFSET = 2**63 - 1


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
            offsets = {name: int(at) for name, _, at in pairs}
            if any(not 0 <= at <= MAX_OFFSET for at in offsets.values()):
                raise ValueError("out of range")
            return cls(int(attempt), offsets)
        except ValueError as problem:
            raise Invalid(f"{text[:60]!r} is no log cursor", "use the id of a line as it was sent") from problem


async def lines(yard: Yard, workload_id: str, query: LogQuery) -> AsyncGenerator[tuple[str, LogLine], None]:
    """(cursor, line) in order. With `follow` it ends when the workload has ended and everything was read.

    Whoever leaves early closes it (contextlib.aclosing).
    """
    workload = await read.get(yard, workload_id)
    if query.replica is not None and query.replica not in workload.submission.replicas:
        raise NotFound(
            f"{workload.name} has no replica {query.replica!r}", f"replicas: {', '.join(workload.submission.replicas)}"
        )
    cursor = Cursor.parse(query.after) if query.after else None
    if cursor is not None:
        # Whoever comes back wants all that came since, however much it is.
        query = replace(query, tail=None)
    number = cursor.attempt if cursor else query.attempt
    if number is None:
        number = workload.attempts
    elif number > workload.attempts and not query.follow:
        raise NotFound(f"{workload.name} has no attempt {number}", f"it has had {workload.attempts}")
    number = max(1, number)
    if query.attempt == ALL_ATTEMPTS and query.tail is not None:
        number, query = await _tail_of_all(yard, workload, query)
    with yard.feed.subscribe(workload_id) as changes:
        while True:
            attempt = await _attempt(yard, workload_id, number)
            if attempt is not None and attempt.handle is not None:
                async with aclosing(_attempt_lines(yard, workload, attempt, query, cursor)) as found:
                    async for item in found:
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


async def _tail_of_all(yard: Yard, workload: Workload, query: LogQuery) -> tuple[int, LogQuery]:
    """In which attempt the last lines of all attempts begin, and how many of them lie there."""
    assert query.tail is not None
    left = query.tail
    for number in range(workload.attempts, 0, -1):
        attempt = await _attempt(yard, workload.id, number)
        if attempt is None or attempt.handle is None:
            continue
        last = replace(query, tail=left, follow=False)
        async with aclosing(_attempt_lines(yard, workload, attempt, last, None)) as found:
            here = len([line async for line in found])
        left -= here
        if left <= 0:
            return number, replace(query, tail=here)
    return 1, replace(query, tail=None)


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
) -> AsyncGenerator[tuple[str, LogLine], None]:
    """What the attempt's log holds now, then, with `follow`, what it gets until its replicas are over."""
    assert attempt.handle is not None
    engine = yard.engine(workload.cluster)
    replicas = (query.replica,) if query.replica else workload.submission.replicas
    offsets = dict(cursor.offsets) if cursor else {}
    sizes = {name: await engine.log_size(attempt.handle, name) for name in replicas}
    starts = {name: offsets.get(name, 0) for name in replicas}
    if query.tail is not None:
        starts = {
            name: await _tail(yard, workload, attempt, name, starts[name], sizes[name], query) for name in replicas
        }
    backlog = [_stored(yard, workload, attempt, name, starts[name], sizes[name], query) for name in replicas]
    async with aclosing(_merged(backlog)) as merged:
        stored = merged if query.tail is None else _last(merged, query.tail)
        async for line in stored:
            offsets[line.replica] = line.cursor
            yield str(Cursor(attempt.number, offsets)), replace(line, attempt=attempt.number)
    for name in replicas:
        offsets[name] = max(offsets.get(name, 0), sizes[name])
    if query.follow:
        async with aclosing(_live(yard, workload, attempt, replicas, offsets)) as live:
            async for line in live:
                offsets[line.replica] = line.cursor
                if _wanted(line, query):
                    yield str(Cursor(attempt.number, offsets)), replace(line, attempt=attempt.number)


async def _stored(
    yard: Yard, workload: Workload, attempt: Attempt, replica: str, start: int, end: int, query: LogQuery
) -> AsyncGenerator[LogLine, None]:
    """The wanted lines between two positions of a replica's log."""
    assert attempt.handle is not None
    async for line in yard.engine(workload.cluster).logs(attempt.handle, replica, start, follow=False):
        if line.cursor > end:
            return
        if _wanted(line, query):
            yield line


async def _tail(
    yard: Yard, workload: Workload, attempt: Attempt, replica: str, start: int, end: int, query: LogQuery
) -> int:
    """A position behind which there are as many wanted lines as the tail asks for; `start` where there are fewer."""
    assert query.tail is not None
    window = TAIL_WINDOW
    while (begin := end - window) > start:
        async with aclosing(_stored(yard, workload, attempt, replica, begin, end, query)) as found:
            if [line async for line in _last(found, query.tail + 1)][query.tail :]:
                return begin
        window *= 4
    return start


async def _merged(sources: list[AsyncGenerator[LogLine, None]]) -> AsyncGenerator[LogLine, None]:
    """Lines of several replicas in the order of time; of each one it holds a single line."""
    async with AsyncExitStack() as stack:
        for source in sources:
            await stack.enter_async_context(aclosing(source))
        heads = [(line, source) for source in sources if (line := await anext(source, None)) is not None]
        while heads:
            at = min(range(len(heads)), key=lambda index: heads[index][0].at)
            line, source = heads[at]
            yield line
            following = await anext(source, None)
            if following is None:
                del heads[at]
            else:
                heads[at] = (following, source)


async def _last(source: AsyncIterator[LogLine], count: int) -> AsyncIterator[LogLine]:
    kept: deque[LogLine] = deque(maxlen=count)
    async for line in source:
        kept.append(line)
    for line in kept:
        yield line


async def _live(
    yard: Yard, workload: Workload, attempt: Attempt, replicas: tuple[str, ...], offsets: dict[str, int]
) -> AsyncGenerator[LogLine, None]:
    """Lines of all replicas as they come, until every replica is over."""
    assert attempt.handle is not None
    engine, handle = yard.engine(workload.cluster), attempt.handle
    arrived: asyncio.Queue[LogLine | Exception | None] = asyncio.Queue(maxsize=1000)

    async def pump(replica: str) -> None:
        async for line in engine.logs(handle, replica, offsets.get(replica, 0), follow=True):
            await arrived.put(line)

    async def pump_all() -> None:
        pumps = [asyncio.create_task(pump(name)) for name in replicas]
        try:
            await asyncio.gather(*pumps)
            await arrived.put(None)
        except Exception as problem:
            await arrived.put(problem)
        finally:
            for task in pumps:
                task.cancel()

    pumping = asyncio.create_task(pump_all())
    try:
        while (came := await arrived.get()) is not None:
            if isinstance(came, Exception):
                raise came
            yield came
    finally:
        pumping.cancel()
        await asyncio.gather(pumping, return_exceptions=True)


def _wanted(line: LogLine, query: LogQuery) -> bool:
    return (query.rank is None or line.rank == query.rank) and (query.since is None or line.at >= query.since)
