"""Progress: what a log says last counts, also when the workload is over by then."""

import asyncio
from pathlib import Path

from tests.control.yards import make_yard, submission, submit_one
from torchyard.control import read
from torchyard.control.progress import Follower, look
from torchyard.control.queue import schedule
from torchyard.control.reconcile import reconcile
from torchyard.engines.fake import FakeEngine, FakeWorld


def test_the_last_step_is_seen_when_the_workload_is_over(tmp_path: Path) -> None:
    async def story() -> None:
        world = FakeWorld()
        yard = make_yard(tmp_path, FakeEngine(world))
        workload = await submit_one(yard, submission())
        await schedule(yard)
        await reconcile(yard, workload.id)
        key = f"{workload.id}-1"
        world.run(key)
        await reconcile(yard, workload.id)
        followers: dict[str, Follower] = {}
        world.say(key, "master-0", "epoch 3/5 loss 0.5")
        await look(yard, followers)
        assert (await read.progress_of(yard, (workload.id,)))[workload.id].step == 3
        world.say(key, "master-0", "epoch 5/5 loss 0.2")
        world.end(key)
        await reconcile(yard, workload.id)
        assert (await read.get(yard, workload.id)).settled
        await look(yard, followers)
        assert (await read.progress_of(yard, (workload.id,)))[workload.id].step == 5
        assert not followers

    asyncio.run(story())


def test_a_run_that_is_over_before_it_was_ever_looked_at_has_its_progress_too(tmp_path: Path) -> None:
    async def story() -> None:
        world = FakeWorld()
        yard = make_yard(tmp_path, FakeEngine(world))
        workload = await submit_one(yard, submission(backoff=1))
        followers: dict[str, Follower] = {}
        for number, step in ((1, 2), (2, 5)):
            await schedule(yard)
            await reconcile(yard, workload.id)
            world.say(f"{workload.id}-{number}", "master-0", f"epoch {step}/5")
            world.end(f"{workload.id}-{number}", "master-0", number % 2)
            world.end(f"{workload.id}-{number}", "worker-0", number % 2)
            await reconcile(yard, workload.id)
            await look(yard, followers)
            seen = (await read.progress_of(yard, (workload.id,)))[workload.id]
            assert (seen.step, seen.attempt) == (step, number)
        assert not followers

    asyncio.run(story())
