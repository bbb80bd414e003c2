"""Changes on this machine are noticed soon: records are looked at, supervisors are waited for."""

import time

import anyio
import pytest

from tests.engines.places import LocalPlace, one, reach
from torchyard.domain.observation import ReplicaState

pytestmark = pytest.mark.anyio


async def test_an_end_is_noticed_at_once(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.plan())
    await reach(engine, handle, ReplicaState.RUNNING)
    changes = engine.changes()
    with anyio.fail_after(20):
        await here.end(handle.key, "worker-0")
        while not (seen := await engine.observe(handle)).over:
            await anext(changes)
    ended = one(seen).ended_at
    assert ended is not None
    assert time.time() - ended.timestamp() < 5
    await engine.close()


async def test_an_engine_that_came_later_notices_too(here: LocalPlace) -> None:
    first = here.engine()
    handle = await here.launch(first, here.plan(replicas=2))
    await reach(first, handle, ReplicaState.RUNNING)
    await first.close()
    engine = here.engine()
    await engine.observe(handle)
    changes = engine.changes()
    with anyio.fail_after(20):
        await here.end(handle.key, "worker-1")
        assert await anext(changes) == handle.key
    await engine.close()


async def test_the_quiet_ones_are_heard_among_the_busy(here: LocalPlace) -> None:
    """A start or stop rings at once, again and again; what others write in their records is still looked at."""
    engine = here.engine()
    quiet = await here.launch(engine, here.plan())
    await reach(engine, quiet, ReplicaState.RUNNING)
    busy = await engine.prepare(here.plan())
    changes = engine.changes()

    async def ring() -> None:
        while True:
            await engine.stop(busy, 1, "busy")
            await anyio.sleep(0.05)

    async with anyio.create_task_group() as group:
        group.start_soon(ring)
        rung = [await anext(changes) for _ in range(6)]
        assert busy.key in rung
        size = await engine.log_size(quiet, "worker-0")
        await here.order(quiet.key, "worker-0", "trap 'sleep 60' TERM", "sh -c 'kill -TERM $PPID' & wait")
        with anyio.fail_after(20):
            await engine.stop(quiet, 60, "ending")
            while await anext(changes) != quiet.key:
                pass
            while await anext(changes) != quiet.key:
                pass
        group.cancel_scope.cancel()
    assert size == 0
    await engine.stop(quiet, 0, "enough")
    await engine.close()
