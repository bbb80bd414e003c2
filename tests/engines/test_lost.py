"""Replicas that leave no exit record: kills, restarts of the machine, pids used again, records half written."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from tests.engines.places import LocalPlace, agents, one, over, reach, until
from torchyard.domain.launch import Handle
from torchyard.domain.observation import LostBecause, ReplicaState
from torchyard.engines.engine import Secrets
from torchyard.engines.local.engine import LocalEngine
from torchyard.engines.local.observe import observe

pytestmark = pytest.mark.anyio
FOREST = "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 100; done' & done"


async def running(place: LocalPlace, engine: LocalEngine, **more: int) -> Handle:
    handle = await place.launch(engine, place.plan(**more))
    await reach(engine, handle, ReplicaState.RUNNING)
    return handle


@pytest.mark.parametrize("victims", [("supervisor",), ("supervisor", "keeper"), ("keeper", "supervisor")])
async def test_the_supervisor_is_killed(here: LocalPlace, victims: tuple[str, ...]) -> None:
    engine = here.engine()
    handle = await running(here, engine, devices=2)
    await here.order(handle.key, "worker-0", FOREST, "echo grown")
    await until(lambda: engine.log_size(handle, "worker-0"))
    pids = agents(here, handle, "worker-0")
    for victim in victims:
        os.kill(pids[victim], signal.SIGKILL)
    seen = await over(engine, handle)
    assert (one(seen).state, one(seen).lost) == (ReplicaState.LOST, LostBecause.SUPERVISOR)
    assert one(seen).started_at is not None
    await here.gone(handle.key)
    (node,) = await engine.nodes()
    assert all(device.free for device in node.devices)
    await engine.start(handle, Secrets())
    assert here.starts(handle.key, "worker-0") == 1


async def test_the_keeper_is_killed(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await running(here, engine)
    await here.order(handle.key, "worker-0", FOREST, "echo grown")
    await until(lambda: engine.log_size(handle, "worker-0"))
    os.kill(agents(here, handle, "worker-0")["keeper"], signal.SIGKILL)
    seen = one(await over(engine, handle))
    assert (seen.state, seen.lost, seen.code) == (ReplicaState.LOST, LostBecause.KEEPER, None)
    await here.gone(handle.key)


async def test_others_are_not_swept_away(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await running(here, engine, replicas=2)
    neighbour = await running(here, engine)
    pids = agents(here, handle, "worker-0")
    for victim in ("supervisor", "keeper"):
        os.kill(pids[victim], signal.SIGKILL)
    seen = await reach(engine, handle, ReplicaState.LOST, "worker-0")
    assert one(seen, "worker-1").state is ReplicaState.RUNNING
    for _ in range(3):
        await engine.observe(handle)
    await here.order(handle.key, "worker-1", "trap 'exit 5' TERM", "echo ready")
    await until(lambda: engine.log_size(handle, "worker-1"))
    await engine.stop(handle, 10, "one was lost")
    seen = await over(engine, handle)
    assert (one(seen, "worker-1").code, one(seen, "worker-1").stopped) == (5, True)
    assert (await engine.observe(neighbour)).running


async def test_a_restart_of_the_machine(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await running(here, engine, replicas=2)
    await here.end(handle.key, "worker-1", 0)
    await reach(engine, handle, ReplicaState.ENDED, "worker-1")
    pids = agents(here, handle, "worker-0")
    for victim in ("supervisor", "keeper"):
        os.kill(pids[victim], signal.SIGKILL)
    await reach(engine, handle, ReplicaState.LOST, "worker-0")
    seen = observe(Path(handle.ref), boot_id=lambda: "another")
    assert [(r.state, r.lost) for r in seen.replicas] == [
        (ReplicaState.LOST, LostBecause.REBOOT),
        (ReplicaState.ENDED, None),
    ]


async def test_a_pid_that_is_used_again_is_left_alone(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await running(here, engine)
    pids = agents(here, handle, "worker-0")
    for victim in ("supervisor", "keeper"):
        os.kill(pids[victim], signal.SIGKILL)
    await over(engine, handle)
    innocent = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        path = Path(handle.ref) / "worker-0" / "started"
        path.write_text(json.dumps({**json.loads(path.read_text()), "pid": innocent.pid}))
        await engine.stop(handle, 0, "enough")
        other = here.engine()
        await other.stop(handle, 0, "enough")
        assert one(await other.observe(handle)).lost is LostBecause.SUPERVISOR
        innocent.communicate(b"\n", timeout=10)
        assert innocent.returncode == 0
    finally:
        innocent.kill()
        innocent.wait()


@pytest.mark.parametrize("damage", [b"", b" " * 100, b"0000000", b'deadbeef {"code": 0}\n'])
async def test_a_torn_exit_record_is_none(here: LocalPlace, damage: bytes) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.run("true"))
    await over(engine, handle)
    folder = Path(handle.ref) / "worker-0"
    (folder / "exit").write_bytes(damage)
    (folder / "status").write_bytes(b'{"state": "run')
    seen = one(await engine.observe(handle))
    assert (seen.state, seen.lost, seen.code) == (ReplicaState.LOST, LostBecause.SUPERVISOR, None)


async def test_a_record_of_a_start_that_is_torn(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await running(here, engine)
    (Path(handle.ref) / "worker-0" / "started").write_bytes(b"{")
    assert one(await engine.observe(handle)).state is ReplicaState.RUNNING
    pids = agents(here, handle, "worker-0")
    for victim in ("supervisor", "keeper"):
        os.kill(pids[victim], signal.SIGKILL)
    assert one(await over(engine, handle)).state is ReplicaState.LOST
    await here.gone(handle.key)


async def test_a_folder_that_is_gone(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await running(here, engine)
    (Path(handle.ref) / "attempt.json").unlink()
    assert (await engine.observe(handle)).gone
    await engine.remove("default", handle.key.rpartition("-")[0])
    await here.gone(handle.key)


async def test_who_looks_while_it_starts_sees_no_loss(here: LocalPlace) -> None:
    """Readers look at any moment, also between a supervisor's first steps."""
    engine = here.engine()
    handle = await engine.prepare(here.plan(replicas=8))
    seen: set[ReplicaState] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.update(r.state for r in observe(Path(handle.ref)).replicas)

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, look)
        await engine.start(handle, Secrets({"PATH": os.environ["PATH"]}))
        await reach(engine, handle, ReplicaState.RUNNING)
        done.set()
    assert seen <= {ReplicaState.PREPARED, ReplicaState.STARTING, ReplicaState.RUNNING}
