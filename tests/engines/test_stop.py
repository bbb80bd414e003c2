"""Stops and starts when things are not as they should be: a full disk, a supervisor that does not answer."""

import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines.places import LocalPlace, agents, one, over, reach
from torchyard.domain.errors import Unavailable
from torchyard.domain.observation import ReplicaState
from torchyard.engines.engine import Secrets

pytestmark = pytest.mark.anyio


@contextmanager
def full_disk() -> Iterator[None]:
    """We can write into no file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_stop_on_a_full_disk(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.plan())
    await reach(engine, handle, ReplicaState.RUNNING)
    with full_disk():
        await engine.stop(handle, 5, "enough")
    seen = one(await over(engine, handle))
    assert (seen.state, seen.stopped) == (ReplicaState.ENDED, True)


async def test_a_start_on_a_full_disk_comes_later(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await engine.prepare(here.plan(devices=1))
    with full_disk(), pytest.raises(Unavailable, match="cannot be started"):
        await engine.start(handle, Secrets({"PATH": os.environ["PATH"]}))
    await engine.start(handle, Secrets({"PATH": os.environ["PATH"]}))
    await reach(engine, handle, ReplicaState.RUNNING)
    await here.end(handle.key, "worker-0", 0)
    assert one(await over(engine, handle)).code == 0
    assert here.starts(handle.key, "worker-0") == 1


async def test_a_start_that_cannot_be_forbidden_on_a_full_disk(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await engine.prepare(here.plan())
    with full_disk(), pytest.raises(Unavailable, match="cannot be written"):
        await engine.stop(handle, 5, "enough")
    await engine.stop(handle, 5, "enough")
    await engine.start(handle, Secrets({"PATH": os.environ["PATH"]}))
    assert one(await over(engine, handle)).stopped
    assert here.starts(handle.key, "worker-0") == 0


async def test_a_supervisor_that_hangs_is_ended_when_its_time_is_over(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.plan(devices=1))
    await reach(engine, handle, ReplicaState.RUNNING)
    os.kill(agents(here, handle, "worker-0")["supervisor"], signal.SIGSTOP)
    await engine.stop(handle, 0, "enough")
    await engine.stop(handle, 0, "enough")
    assert not (await engine.observe(handle)).over
    record = Path(handle.ref) / "worker-0" / "stop"
    asked = json.loads(record.read_text())
    assert 55 < asked["due"] - time.monotonic() <= 60
    record.write_text(json.dumps({**asked, "due": time.monotonic()}))
    await here.engine().stop(handle, 0, "enough")
    assert one(await over(engine, handle)).state is ReplicaState.LOST
    await here.gone(handle.key)
    (node,) = await engine.nodes()
    assert all(device.free for device in node.devices)
