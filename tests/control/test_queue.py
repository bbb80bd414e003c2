"""Who starts, when something is wrong with somebody in the line."""

import asyncio
from pathlib import Path

from tests.control.yards import ANN, make_yard, submission, submit_one
from torchyard.control import ask
from torchyard.control.queue import schedule
from torchyard.control.reconcile import reconcile
from torchyard.domain.workload import Phase
from torchyard.engines.fake import FakeEngine, FakeWorld


def test_a_plan_that_became_impossible_holds_nobody_up(tmp_path: Path) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld(devices=8)))
        claim = {"storage": {"pvc": [{"claimName": "c", "path": "/c", "claimInfo": {"size": "1G"}}]}}
        source = await submit_one(yard, submission("source", spec=claim))
        heir = await submit_one(yard, submission("heir", resumeFrom="source"))
        other = await submit_one(yard, submission("other"))
        await ask.delete(yard, source.id, ANN)
        await schedule(yard)
        for workload in (heir, other):
            await reconcile(yard, workload.id)
        seen = {name: yard.board.get(w.id) for name, w in (("heir", heir), ("other", other))}
        assert seen["other"] is not None
        assert seen["other"].active
        # Nothing is left to do for it, so the board has forgotten it.
        assert seen["heir"] is None

    asyncio.run(story())


def test_it_fails_and_says_why(tmp_path: Path) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld(devices=8)))
        claim = {"storage": {"pvc": [{"claimName": "c", "path": "/c", "claimInfo": {"size": "1G"}}]}}
        source = await submit_one(yard, submission("source", spec=claim))
        heir = await submit_one(yard, submission("heir", resumeFrom="source"))
        await ask.delete(yard, source.id, ANN)
        await schedule(yard)
        decision = await reconcile(yard, heir.id)
        assert decision is not None
        assert decision.workload.phase is Phase.FAILED
        assert "there is no workload 'source'" in decision.workload.reason

    asyncio.run(story())
