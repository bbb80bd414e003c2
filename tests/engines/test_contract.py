"""What every engine must do alike: launch in two steps, once; tell facts; stop; keep logs, files and devices."""

from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from tests.engines.places import DEVICES, Place, one, over, reach, until
from torchyard.domain.errors import NotFound
from torchyard.domain.launch import Handle
from torchyard.domain.observation import LogLine, ReplicaState
from torchyard.engines.engine import Busy, CannotStart, Engine, Secrets

pytestmark = pytest.mark.anyio
NOTHING = Secrets()


@pytest.fixture
async def engine(place: Place) -> AsyncIterator[Engine]:
    made = place.engine()
    await made.open()
    yield made
    await made.close()


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def texts(engine: Engine, handle: Handle, after: int = 0, follow: bool = False) -> list[str]:
    return [line.text for line in await lines(engine, handle, after, follow)]


async def lines(engine: Engine, handle: Handle, after: int = 0, follow: bool = False) -> list[LogLine]:
    return [line async for line in engine.logs(handle, "worker-0", after, follow)]


async def free(engine: Engine) -> int:
    (node,) = await engine.nodes()
    return sum(device.free for device in node.devices)


async def began_once(place: Place, handle: Handle, *names: str) -> None:
    """A command that runs may not have come to its first line yet."""

    async def look() -> bool:
        return all(place.starts(handle.key, name) for name in names)

    await until(look)
    assert [place.starts(handle.key, name) for name in names] == [1] * len(names)


def states(replicas: Sequence[object]) -> list[object]:
    return [getattr(seen, "state", None) for seen in replicas]


# Launch


async def test_prepare_twice_is_once(place: Place, engine: Engine) -> None:
    wanted = place.plan(replicas=2)
    first = await engine.prepare(wanted)
    again = await place.engine().prepare(wanted)
    assert first == again
    assert first.key == wanted.key
    assert states((await engine.observe(first)).replicas) == [ReplicaState.PREPARED] * 2


async def test_nothing_runs_before_start(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan(devices=1))
    seen = await engine.observe(handle)
    assert not seen.running
    assert not seen.over
    assert await free(engine) == DEVICES
    assert await texts(engine, handle, follow=False) == []
    assert place.starts(handle.key, "worker-0") == 0


async def test_replicas_keep_the_order_of_the_plan(place: Place, engine: Engine) -> None:
    wanted = place.plan(replicas=3)
    handle = await engine.prepare(wanted)
    await engine.start(handle, NOTHING)
    seen = await reach(engine, handle, ReplicaState.RUNNING)
    assert [r.name for r in seen.replicas] == [r.name for r in wanted.replicas]


async def test_start_twice_runs_once(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan(devices=1, replicas=2))
    await engine.start(handle, NOTHING)
    await engine.start(handle, NOTHING)
    await reach(engine, handle, ReplicaState.RUNNING)
    await place.engine().start(handle, NOTHING)
    await place.end(handle.key, "worker-0")
    await reach(engine, handle, ReplicaState.ENDED, "worker-0")
    await engine.start(handle, NOTHING)
    assert one(await engine.observe(handle)).state is ReplicaState.ENDED
    assert await free(engine) in (DEVICES - 1, DEVICES - 2)
    await began_once(place, handle, "worker-0", "worker-1")


async def test_stop_before_start_is_for_ever(place: Place, engine: Engine) -> None:
    wanted = place.plan(devices=1)
    handle = await engine.prepare(wanted)
    await engine.stop(handle, 5, "changed my mind")
    await engine.start(handle, NOTHING)
    await engine.start(await place.engine().prepare(wanted), NOTHING)
    seen = one(await engine.observe(handle))
    assert (seen.state, seen.stopped, seen.code) == (ReplicaState.ENDED, True, None)
    assert seen.ended_at is not None
    assert place.starts(handle.key, "worker-0") == 0
    assert await free(engine) == DEVICES


async def test_what_the_cluster_does_not_know_cannot_start(place: Place, engine: Engine) -> None:
    wanted = place.plan()
    handle = await engine.prepare(wanted)
    await engine.remove(wanted.project, wanted.workload_id)
    assert (await engine.observe(handle)).gone
    with pytest.raises(CannotStart):
        await engine.start(handle, NOTHING)
    await engine.stop(handle, 1, "gone")
    await engine.remove(wanted.project, wanted.workload_id)


# The end


@pytest.mark.parametrize(("code", "signal"), [(0, None), (3, None), (None, 9), (None, 11)])
async def test_an_end_by_itself(place: Place, engine: Engine, code: int | None, signal: int | None) -> None:
    handle = await engine.prepare(place.plan(replicas=2))
    await engine.start(handle, NOTHING)
    await reach(engine, handle, ReplicaState.RUNNING)
    await place.end(handle.key, "worker-1", code, signal)
    seen = await reach(engine, handle, ReplicaState.ENDED, "worker-1")
    ended = one(seen, "worker-1")
    assert (ended.code, ended.signal, ended.stopped, ended.reason) == (code, signal, False, None)
    assert ended.started_at is not None
    assert ended.ended_at is not None
    assert ended.started_at <= ended.ended_at <= seen.at
    assert one(seen).state is ReplicaState.RUNNING
    assert not seen.over


async def test_a_stop(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan(devices=1, replicas=2))
    await engine.start(handle, NOTHING)
    await reach(engine, handle, ReplicaState.RUNNING)
    await place.end(handle.key, "worker-0", 0)
    await reach(engine, handle, ReplicaState.ENDED, "worker-0")
    for _ in range(2):
        await engine.stop(handle, 5, "enough")
    seen = await over(engine, handle)
    assert [(r.code, r.signal, r.stopped) for r in seen.replicas] == [(0, None, False), (None, 15, True)]
    await engine.stop(handle, 5, "enough")
    assert (await engine.observe(handle)).replicas == seen.replicas
    assert await free(engine) == DEVICES


# Memory


async def test_an_engine_knows_from_the_handle_alone(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan(devices=1, replicas=2))
    await engine.start(handle, NOTHING)
    await place.say(handle.key, "worker-0", "hello")
    await place.end(handle.key, "worker-1", 4)
    await reach(engine, handle, ReplicaState.ENDED, "worker-1")
    before = await reach(engine, handle, ReplicaState.RUNNING, "worker-0")
    await engine.close()
    other = place.engine()
    await other.open()
    assert (await other.observe(handle)).replicas == before.replicas
    await place.end(handle.key, "worker-0", 0)
    seen = await over(other, handle)
    assert [r.code for r in seen.replicas] == [0, 4]
    assert await texts(other, handle) == ["hello"]
    await other.close()


async def test_changes_are_told(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan())
    changes = engine.changes()
    with anyio.fail_after(20):
        await engine.start(handle, NOTHING)
        assert await anext(changes) == handle.key
        await reach(engine, handle, ReplicaState.RUNNING)
        await place.end(handle.key, "worker-0", 0)
        while not (await engine.observe(handle)).over:
            assert await anext(changes) == handle.key


# Logs


async def test_logs_from_a_cursor(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan())
    await engine.start(handle, NOTHING)
    assert await engine.log_size(handle, "worker-0") == 0
    await place.say(handle.key, "worker-0", *(f"line {i}" for i in range(5)))
    await place.end(handle.key, "worker-0")
    await over(engine, handle)
    said = await lines(engine, handle)
    assert [line.text for line in said] == [f"line {i}" for i in range(5)]
    assert {(line.attempt, line.replica, line.kind) for line in said} == {(1, "worker-0", "o")}
    cursors = [line.cursor for line in said]
    assert cursors == sorted(set(cursors))
    assert await engine.log_size(handle, "worker-0") == cursors[-1]
    for position, cursor in enumerate([0, *cursors]):
        assert await lines(engine, handle, after=cursor) == said[position:]


async def test_logs_are_followed_to_the_end(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan())
    await engine.start(handle, NOTHING)
    await place.say(handle.key, "worker-0", "first")
    seen: list[str] = []
    with anyio.fail_after(20):
        async for line in engine.logs(handle, "worker-0", 0, follow=True):
            seen.append(line.text)
            if line.text == "first":
                await place.say(handle.key, "worker-0", "second")
                await place.end(handle.key, "worker-0", 1)
    assert seen == ["first", "second"]


# Devices


async def test_too_few_devices_start_nothing(place: Place, engine: Engine) -> None:
    big = await engine.prepare(place.plan(devices=3))
    await engine.start(big, NOTHING)
    wide = await engine.prepare(place.plan(devices=1, replicas=2))
    with pytest.raises(Busy):
        await engine.start(wide, NOTHING)
    assert states((await engine.observe(wide)).replicas) == [ReplicaState.PREPARED] * 2
    assert await free(engine) == DEVICES - 3
    small = await engine.prepare(place.plan(devices=1))
    await engine.start(small, NOTHING)
    await place.end(big.key, "worker-0")
    await over(engine, big)
    await engine.start(wide, NOTHING)
    await reach(engine, wide, ReplicaState.RUNNING)
    await began_once(place, wide, "worker-0", "worker-1")


async def test_nodes_say_who_holds_what(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan(devices=2, replicas=1))
    await engine.start(handle, NOTHING)
    (node,) = await place.engine().nodes()
    assert len(node.devices) == DEVICES
    assert [device.index for device in node.devices] == list(range(DEVICES))
    held = [device for device in node.devices if not device.free]
    assert [(device.held_by, device.ours) for device in held] == [(handle.key, True)] * 2
    assert node.cpu_cores > 0
    assert node.memory > 2**20
    await engine.stop(handle, 0, "enough")
    await over(engine, handle)
    assert await free(engine) == DEVICES


async def test_no_device_is_needed_where_none_is_asked(place: Place, engine: Engine) -> None:
    full = await engine.prepare(place.plan(devices=DEVICES))
    await engine.start(full, NOTHING)
    handle = await engine.prepare(place.plan(devices=0))
    await engine.start(handle, NOTHING)
    await reach(engine, handle, ReplicaState.RUNNING)


async def test_remove_frees_the_devices_of_what_runs(place: Place, engine: Engine) -> None:
    wanted = place.plan(devices=2)
    handle = await engine.prepare(wanted)
    await engine.start(handle, NOTHING)
    await reach(engine, handle, ReplicaState.RUNNING)
    await engine.remove(wanted.project, wanted.workload_id)
    assert (await engine.observe(handle)).gone
    assert await free(engine) == DEVICES


# Commands beside the ranks


async def test_exec_is_there_where_the_engine_says_so(place: Place, engine: Engine) -> None:
    handle = await engine.prepare(place.plan())
    await engine.start(handle, NOTHING)
    await reach(engine, handle, ReplicaState.RUNNING)
    if engine.capabilities.exec:
        running = await engine.exec(handle, "worker-0", ("/bin/sh", "-c", "exit 3"), tty=False)
        assert await running.wait() == 3
        await running.close()
    else:
        with pytest.raises(CannotStart):
            await engine.exec(handle, "worker-0", ("true",), tty=False)


# Files


async def test_files_of_a_claim(place: Place, engine: Engine) -> None:
    with pytest.raises(NotFound):
        await engine.list_files("default", "ckpt", "")
    for _ in range(2):
        await engine.make_claim("default", "ckpt")
    assert await engine.list_files("default", "ckpt", "") == ()
    await engine.put_file("default", "ckpt", "a/b/model.pt", chunks(b"one", b"two"))
    await engine.put_file("default", "ckpt", "readme", chunks())
    root = await engine.list_files("default", "ckpt", "/")
    assert [(entry.path, entry.folder, entry.size) for entry in root] == [("a", True, 0), ("readme", False, 0)]
    for path in ("a/b", "a/b/model.pt"):
        (entry,) = await engine.list_files("default", "ckpt", path)
        assert (entry.path, entry.folder, entry.size) == ("a/b/model.pt", False, 6)
    file = await engine.open_file("default", "ckpt", "a/b/model.pt")
    file.seek(2)
    assert (file.read(2), file.tell()) == (b"et", 4)
    file.close()
    await engine.put_file("default", "ckpt", "a/b/model.pt", chunks(b"new"))
    (entry,) = await engine.list_files("default", "ckpt", "a/b")
    assert entry.size == 3
    await engine.remove_file("default", "ckpt", "readme")
    await engine.remove_file("default", "ckpt", "a")
    assert await engine.list_files("default", "ckpt", "") == ()


async def test_files_that_are_not_there(place: Place, engine: Engine) -> None:
    await engine.make_claim("default", "ckpt")
    for ask in (engine.list_files, engine.open_file, engine.remove_file):
        with pytest.raises(NotFound):
            await ask("default", "ckpt", "no/such")
        with pytest.raises(NotFound):
            await ask("other", "ckpt", "x")


async def test_a_claim_goes_with_all_that_is_in_it(place: Place, engine: Engine) -> None:
    await engine.make_claim("default", "ckpt")
    await engine.put_file("default", "ckpt", "x", chunks(b"1"))
    for _ in range(2):
        await engine.remove_claim("default", "ckpt")
    with pytest.raises(NotFound):
        await engine.list_files("default", "ckpt", "")
    await engine.make_claim("default", "ckpt")
    assert await engine.list_files("default", "ckpt", "") == ()
