"""Readers of a log that leave before it ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from tests.control.yards import make_yard, submission, submit_one
from torchyard.control.logs import LogQuery, lines
from torchyard.control.queue import schedule
from torchyard.control.reconcile import reconcile
from torchyard.domain.launch import Handle
from torchyard.domain.observation import LogLine
from torchyard.engines.fake import FakeEngine, FakeWorld


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
