"""What becomes of a workload when the engine, a receiver or another user is in the way."""

import asyncio
from pathlib import Path

import pytest

from tests.control.yards import ANN, make_yard, submission, submit_one
from torchyard.control import ask, plans
from torchyard.control.prune import prune
from torchyard.control.queue import schedule
from torchyard.control.read import events_of, get
from torchyard.control.reconcile import reconcile
from torchyard.control.yard import Yard
from torchyard.domain.errors import NotFound, Unavailable
from torchyard.domain.launch import Handle, LaunchPlan
from torchyard.domain.workload import Phase, Workload
from torchyard.engines.engine import Secrets
from torchyard.engines.fake import FakeEngine, FakeWorld


class Away(FakeEngine):
    """Cannot be reached at first."""

    away = True

    async def prepare(self, plan: LaunchPlan) -> Handle:
        if self.away:
            raise Unavailable("the cluster does not answer", "see whether it runs")
        return await super().prepare(plan)


async def ran(yard: Yard, engine: FakeEngine, **more: object) -> Workload:
    """A workload that has completed."""
    workload = await submit_one(yard, submission(**more), SECRET="s")
    await schedule(yard)
    await reconcile(yard, workload.id)
    engine.world.end(f"{workload.id}-1")
    await reconcile(yard, workload.id)
    return await get(yard, workload.id)


def test_why_it_cannot_start_yet_is_said(tmp_path: Path) -> None:
    async def story() -> None:
        engine = Away(FakeWorld())
        yard = make_yard(tmp_path, engine)
        workload = await submit_one(yard, submission())
        await schedule(yard)
        with pytest.raises(Unavailable):
            await reconcile(yard, workload.id)
        seen = await get(yard, workload.id)
        assert seen.phase is Phase.INITIALIZING
        assert "the cluster does not answer (see whether it runs)" in seen.reason
        engine.away = False
        await reconcile(yard, workload.id)
        assert (await get(yard, workload.id)).attempt is not None
        assert engine.world.attempts[f"{workload.id}-1"].starts == {"master-0": 1, "worker-0": 1}

    asyncio.run(story())


def test_a_resumed_workload_is_not_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        engine = FakeEngine(FakeWorld())
        yard = make_yard(tmp_path, engine)
        workload = await ran(yard, engine)
        lock = yard.lock(workload.id)
        async with lock:
            resuming = asyncio.create_task(ask.resume(yard, workload.id, ANN))
            await asyncio.sleep(0)
            pruning = asyncio.create_task(prune(yard, 0, dry_run=False, actor=ANN))
            # Both wait for their turn, the resume first: prune has its list of old workloads by now.
            while len(lock._waiters or ()) < 2:
                await asyncio.sleep(0.001)
        await asyncio.gather(pruning, resuming)
        assert (await get(yard, workload.id)).phase is Phase.RESUMING
        assert engine.world.removed == []

    asyncio.run(story())


def test_the_sealed_environment_goes_with_its_workload(tmp_path: Path) -> None:
    async def story() -> None:
        engine = FakeEngine(FakeWorld())
        yard = make_yard(tmp_path, engine)
        workload = await ran(yard, engine)
        assert plans.secrets(yard, workload) == Secrets(caller={"SECRET": "s"}, named={"master-0": {}, "worker-0": {}})
        await ask.delete(yard, workload.id, ANN)
        await reconcile(yard, workload.id)
        with pytest.raises(NotFound, match="is missing"):
            plans.secrets(yard, workload)

    asyncio.run(story())


@pytest.mark.parametrize("webhook", ["http://127.0.0.1:1/x", "http://127.0.0.1/a b", "http://nobody.invalid/"])
def test_a_receiver_that_cannot_be_called_is_tried_once_and_named(webhook: str, tmp_path: Path) -> None:
    async def story() -> None:
        engine = FakeEngine(FakeWorld())
        yard = make_yard(tmp_path, engine)
        workload = await ran(yard, engine, notify={"webhook": webhook})
        with yard.feed.subscribe(workload.id) as changes:
            while (await get(yard, workload.id)).notices:
                await changes.next()
        told = [
            e for _, e in await events_of(yard, workload.id, 0, 50, newest_first=True) if e.reason == "NotifyFailed"
        ]
        assert len(told) == 1 and "webhook" in told[0].message
        assert yard.board.get(workload.id) is None

    asyncio.run(story())


def test_a_command_is_told_the_facts_and_nothing_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS_OWN", "secret")

    async def story() -> None:
        engine = FakeEngine(FakeWorld())
        yard = make_yard(tmp_path, engine)
        workload = await ran(yard, engine, notify={"command": f"env > {tmp_path}/told"})
        with yard.feed.subscribe(workload.id) as changes:
            while (await get(yard, workload.id)).notices:
                await changes.next()
        told = (tmp_path / "told").read_text().splitlines()
        assert "TORCHYARD_NOTIFY_KIND=ended" in told
        assert f"TORCHYARD_NOTIFY_WORKLOAD={workload.name}" in told
        assert not [line for line in told if line.startswith("SERVERS_OWN")]

    asyncio.run(story())
