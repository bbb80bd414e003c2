"""Readers of a log that leave before it ends, and come back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.control.yards import make_yard, submission, submit_one
from torchyard.control.logs import Cursor, LogQuery, lines
from torchyard.control.queue import schedule
from torchyard.control.reconcile import reconcile
from torchyard.domain.errors import Invalid
from torchyard.domain.launch import Handle
from torchyard.domain.observation import LogLine
from torchyard.engines.fake import FakeEngine, FakeWorld
from torchyard.engines.local.engine import MOST_REPLICAS
from torchyard.server.api.logs import MAX_CURSOR


class Talkative(FakeEngine):
    """Its replicas never stop talking."""

    async def logs(self, handle: Handle, replica: str, after: int, follow: bool) -> AsyncIterator[LogLine]:
        async for line in super().logs(handle, replica, 0 if follow else after, follow=False):
            while True:
                yield line
                await asyncio.sleep(0)
                if not follow:
                    break


def test_a_reader_that_leaves_a_full_queue_behind_is_let_go(tmp_path: Path) -> None:
    async def story() -> None:
        world = FakeWorld()
        yard = make_yard(tmp_path, Talkative(world))
        workload = await submit_one(yard, submission())
        await schedule(yard)
        await reconcile(yard, workload.id)
        for name in ("master-0", "worker-0"):
            world.say(f"{workload.id}-1", name, "on and on")
        reader = lines(yard, workload.id, LogQuery(follow=True))
        taken = [await anext(reader) for _ in range(3)]
        assert {line.text for _, line in taken} == {"on and on"}
        # Now nobody reads, and the replicas fill what holds their lines.
        for _ in range(3000):
            await asyncio.sleep(0)
        await asyncio.wait_for(reader.aclose(), 5)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(story())


def test_who_comes_back_gets_all_that_came_since(tmp_path: Path) -> None:
    """However few lines the first look asked for."""

    async def story() -> None:
        world = FakeWorld()
        yard = make_yard(tmp_path, FakeEngine(world))
        workload = await submit_one(yard, submission())
        await schedule(yard)
        await reconcile(yard, workload.id)
        key = f"{workload.id}-1"
        for text in ("a1", "a2", "a3"):
            world.say(key, "worker-0", text)
        seen = [item async for item in lines(yard, workload.id, LogQuery(tail=2))]
        for text in ("b1", "b2", "b3", "b4"):
            world.say(key, "worker-0", text)
        query = LogQuery(tail=2, after=seen[-1][0])
        missed = [item async for item in lines(yard, workload.id, query)]
        assert [line.text for _, line in (*seen, *missed)] == ["a2", "a3", "b1", "b2", "b3", "b4"]

    asyncio.run(story())


@pytest.mark.parametrize("text", ["1:worker-0=99999999999999999999", "1:worker-0=-1", "x", "1:worker-0=a"])
def test_what_is_no_cursor(text: str) -> None:
    with pytest.raises(Invalid):
        Cursor.parse(text)


def test_a_cursor_of_the_largest_workload_fits_in_a_header() -> None:
    assert len(str(Cursor(20, {f"worker-{i}": 10**15 for i in range(MOST_REPLICAS)}))) <= MAX_CURSOR


@pytest.mark.parametrize(("tail", "expected"), [(0, []), (1, ["4"]), (3, ["2", "3", "4"]), (9, list("1234"))])
def test_the_last_lines_of_all_attempts_are_the_last_ones(tmp_path: Path, tail: int, expected: list[str]) -> None:
    async def story() -> None:
        world = FakeWorld()
        yard = make_yard(tmp_path, FakeEngine(world))
        workload = await submit_one(yard, submission(backoff=1))
        for number in (1, 2):
            await schedule(yard)
            await reconcile(yard, workload.id)
            for name, line in (("master-0", 2 * number - 1), ("worker-0", 2 * number)):
                world.say(f"{workload.id}-{number}", name, str(line))
            for name in ("master-0", "worker-0"):
                world.end(f"{workload.id}-{number}", name, 1)
            await reconcile(yard, workload.id)
        seen = [line.text async for _, line in lines(yard, workload.id, LogQuery(attempt=0, tail=tail))]
        assert seen == expected

    asyncio.run(story())
