"""Who starts, when something is wrong with somebody in the line."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.control.yards import ANN, make_yard, submission, submit_one
from torchyard.control import ask, claims
from torchyard.control.queue import schedule
from torchyard.control.read import get
from torchyard.control.reconcile import reconcile
from torchyard.control.yard import Yard
from torchyard.domain.errors import Conflict, InUse, Invalid, NotFound
from torchyard.domain.observation import Node
from torchyard.domain.spec import Submission
from torchyard.domain.workload import Phase, Workload
from torchyard.engines.fake import FakeEngine, FakeWorld

CLAIM = {"storage": {"pvc": [{"claimName": "c", "path": "/c", "claimInfo": {"size": "1G"}}]}}


async def with_checkpoint(yard: Yard, name: str) -> Workload:
    """A workload that has left a snapshot on its claim."""
    made = await submit_one(yard, submission(name, spec=CLAIM))
    await write_snapshot(yard, made)
    return made


async def write_snapshot(yard: Yard, workload: Workload) -> None:
    async def data() -> AsyncIterator[bytes]:
        yield b"weights"

    await yard.engine(workload.cluster).put_file(workload.project, "c", "snapshot.pt", data())


def test_a_checkpoint_to_resume_from_must_be_there(tmp_path: Path) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld()))
        await with_checkpoint(yard, "source")
        await submit_one(yard, submission("heir", resumeFrom="source"))
        with pytest.raises(Invalid, match=r"no checkpoint 'c:/epoch9.pt'"):
            await submit_one(yard, submission("other", resumeFrom="source:epoch9.pt"))

    asyncio.run(story())


def test_a_checkpoint_that_something_else_wrote_is_warned_of(tmp_path: Path) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld()))
        source = await with_checkpoint(yard, "source")
        heir = await submit_one(yard, submission("heir", resumeFrom="source"))
        (warning,) = [f for f in heir.findings if f.rule == "resume-writer"]
        assert warning.message.startswith("snapshot.pt was written while source did not run")
        await schedule(yard)
        await reconcile(yard, source.id)
        await write_snapshot(yard, source)
        other = await submit_one(yard, submission("other", resumeFrom="source"))
        assert [f for f in other.findings if f.rule == "resume-writer"] == []

    asyncio.run(story())


def test_a_checkpoint_outlives_the_name_of_its_workload(tmp_path: Path) -> None:
    """Whoever resumes from it is retried also when its workload was deleted, and the claim stays in use."""

    async def story() -> None:
        engine = FakeEngine(FakeWorld())
        yard = make_yard(tmp_path, engine)
        source = await with_checkpoint(yard, "source")
        heir = await submit_one(yard, submission("heir", resumeFrom="source", backoff=1))
        await ask.delete(yard, source.id, ANN)
        await reconcile(yard, source.id)
        for number in (1, 2):
            await schedule(yard)
            await reconcile(yard, heir.id)
            plan = engine.world.attempts[f"{heir.id}-{number}"].plan
            assert {mount.claim for replica in plan.replicas for mount in replica.mounts} == {"c"}
            (claim,) = await claims.listing(yard)
            assert [w.name for w in claims.users(yard, claim)] == ["heir"]
            for name in ("master-0", "worker-0"):
                engine.world.end(f"{heir.id}-{number}", name, 1)
            await reconcile(yard, heir.id)

    asyncio.run(story())


def test_the_masters_own_claim_is_in_use(tmp_path: Path) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld()))
        wanted = submission("ddp").model_dump(mode="json", by_alias=True, exclude_unset=True)
        wanted["masterSpec"] = {"command": "bash run.sh", **CLAIM}
        await submit_one(yard, Submission.model_validate(wanted))
        (claim,) = await claims.listing(yard)
        with pytest.raises(InUse, match="ddp"):
            await claims.delete(yard, claim.id, ANN)

    asyncio.run(story())


def test_a_taken_name_makes_no_claim(tmp_path: Path) -> None:
    async def story() -> None:
        engine = FakeEngine(FakeWorld())
        yard = make_yard(tmp_path, engine)
        await submit_one(yard, submission("ddp"))
        with pytest.raises(Conflict):
            await submit_one(yard, submission("ddp", spec=CLAIM))
        with pytest.raises(NotFound):
            await engine.list_files("default", "c", "")

    asyncio.run(story())


class Broken(FakeEngine):
    """A cluster that plans nothing for a while."""

    broken = True

    async def nodes(self) -> tuple[Node, ...]:
        if self.broken:
            raise RuntimeError("unforeseen")
        return await super().nodes()


def test_what_cannot_be_planned_holds_nobody_up(tmp_path: Path) -> None:
    async def story() -> None:
        engine = Broken(FakeWorld(devices=8))
        engine.broken = False
        yard = make_yard(tmp_path, engine)
        shm = {"compute": {"gpuDevicesRequest": 0, "largeShmRequest": True}}
        odd = await submit_one(yard, submission("odd", spec=shm, isolation="sandbox"))
        other = await submit_one(yard, submission("other", devices=0))
        engine.broken = True
        await schedule(yard)
        waiting, started = await get(yard, odd.id), await get(yard, other.id)
        assert (waiting.attempts, started.attempts) == (0, 1)
        engine.broken = False
        await schedule(yard)
        assert (await get(yard, odd.id)).attempts == 1

    asyncio.run(story())


def test_a_plan_that_became_impossible_fails_and_says_why(tmp_path: Path) -> None:
    async def story() -> None:
        world = FakeWorld(devices=8)
        yard = make_yard(tmp_path, FakeEngine(world))
        odd = await submit_one(yard, submission("odd", isolation="sandbox"))
        other = await submit_one(yard, submission("other"))
        world.capabilities = replace(world.capabilities, sandbox=False, why_not={"sandbox": "bubblewrap is gone"})
        await schedule(yard)
        for workload in (odd, other):
            await reconcile(yard, workload.id)
        failed = await get(yard, odd.id)
        assert (failed.phase, "bubblewrap is gone" in failed.reason) == (Phase.FAILED, True)
        assert (await get(yard, other.id)).active

    asyncio.run(story())
