"""Commands beside the ranks, as the engine gives them out: pipes, terminals, many at once, and their end."""

import sys
from collections.abc import AsyncIterator

import anyio
import pytest

from tests.engines.places import LocalPlace, environment, over, pids, reach, until
from torchyard.domain.launch import Handle
from torchyard.domain.observation import ReplicaState
from torchyard.engines.engine import CannotStart, Exec
from torchyard.engines.local.engine import LocalEngine

pytestmark = pytest.mark.anyio
MANY = 24
"""More than the threads that a small machine's server has for its own work."""


@pytest.fixture
async def engine(here: LocalPlace) -> AsyncIterator[LocalEngine]:
    made = here.engine()
    yield made
    await made.close()


@pytest.fixture
async def handle(here: LocalPlace, engine: LocalEngine) -> Handle:
    made = await here.launch(engine, here.plan(), PATH="/usr/bin:/bin", FRUIT="fig")
    await reach(engine, made, ReplicaState.RUNNING)
    return made


async def outcome(running: Exec) -> tuple[bytes, bytes, int]:
    """(stdout, stderr, exit code) of a command that ends."""
    said = {1: b"", 2: b""}
    with anyio.fail_after(20):
        async for stream, data in running.output():
            said[stream] += data
        code = await running.wait()
    await running.close()
    return said[1], said[2], code


async def read_until(output: AsyncIterator[tuple[int, bytes]], wanted: bytes) -> bytes:
    said = b""
    with anyio.fail_after(20):
        while wanted not in said:
            said += (await anext(output))[1]
    return said


async def test_pipes_the_replicas_world_and_an_exit_code(engine: LocalEngine, handle: Handle) -> None:
    running = await engine.exec(handle, "worker-0", ("sh", "-c", "cat; echo $FRUIT; echo bad >&2; exit 7"), tty=False)
    await running.write(b"one\n")
    await running.write(b"two\n")
    await running.write(b"")
    await running.write(b"too late")
    assert await outcome(running) == (b"one\ntwo\nfig\n", b"bad\n", 7)


async def test_a_signal_is_told_as_in_a_shell(engine: LocalEngine, handle: Handle) -> None:
    running = await engine.exec(handle, "worker-0", ("sh", "-c", "kill -11 $$"), tty=False)
    assert (await outcome(running))[2] == 139


async def test_much_comes_and_goes_whole(engine: LocalEngine, handle: Handle) -> None:
    running = await engine.exec(handle, "worker-0", ("cat",), tty=False)
    data = bytes(range(256)) * 8192

    async def feed() -> None:
        for begin in range(0, len(data), 300_000):
            await running.write(data[begin : begin + 300_000])
        await running.write(b"")

    async with anyio.create_task_group() as group:
        group.start_soon(feed)
        assert await outcome(running) == (data, b"", 0)


async def test_a_terminal(engine: LocalEngine, handle: Handle) -> None:
    program = "import os, sys; print(os.get_terminal_size(), os.isatty(0)); input(); print(os.get_terminal_size())"
    argv = (sys.executable, "-S", "-c", program)
    running = await engine.exec(handle, "worker-0", argv, tty=True, rows=33, columns=101)
    output = running.output()
    first = await read_until(output, b"\n")
    assert b"columns=101, lines=33" in first
    assert b"True" in first
    await running.resize(40, 120)
    await running.write(b"go\n")
    assert b"columns=120, lines=40" in await read_until(output, b"lines=40")
    assert await running.wait() == 0
    await running.close()


async def test_the_end_of_a_terminals_input(engine: LocalEngine, handle: Handle) -> None:
    running = await engine.exec(handle, "worker-0", ("cat",), tty=True)
    await running.write(b"x\n")
    await running.write(b"")
    assert (await outcome(running))[2] == 0


async def test_close_ends_it(engine: LocalEngine, handle: Handle) -> None:
    argv = ("env", "MARK=closed", "sh", "-c", "trap '' HUP TERM; echo deaf; while :; do sleep 100; done")
    running = await engine.exec(handle, "worker-0", argv, tty=False)
    await read_until(running.output(), b"deaf")
    await running.close()
    await running.close()
    await running.write(b"nobody is there")

    async def gone() -> bool:
        return not [pid for pid in pids() if "MARK=closed" in environment(pid)]

    await until(gone)
    assert (await engine.observe(handle)).running


async def test_many_that_say_nothing_hold_nobody_up(here: LocalPlace, engine: LocalEngine, handle: Handle) -> None:
    async def sit(running: Exec) -> None:
        async for _ in running.output():
            pass

    idle = [await engine.exec(handle, "worker-0", ("cat",), tty=bool(i % 2)) for i in range(MANY)]
    async with anyio.create_task_group() as group:
        for running in idle:
            group.start_soon(sit, running)
        await anyio.sleep(0.1)
        with anyio.fail_after(10):
            assert (await engine.observe(handle)).running
            assert await engine.list_files("default", str(here.folder), "")
        for running in idle:
            await running.write(b"")
    with anyio.fail_after(20):
        assert [await running.wait() for running in idle] == [0] * MANY
    for running in idle:
        await running.close()


async def test_one_that_does_not_read_holds_nobody_up(engine: LocalEngine, handle: Handle) -> None:
    deaf = [await engine.exec(handle, "worker-0", ("sleep", "100"), tty=False) for _ in range(MANY)]
    async with anyio.create_task_group() as group:
        for running in deaf:
            group.start_soon(running.write, b"x" * 1_000_000)
        await anyio.sleep(0.1)
        with anyio.fail_after(10):
            assert (await engine.observe(handle)).running
        group.cancel_scope.cancel()
    for running in deaf:
        await running.close()


async def test_it_ends_with_the_replica(here: LocalPlace, engine: LocalEngine, handle: Handle) -> None:
    running = await engine.exec(handle, "worker-0", ("sh", "-c", "echo on; exec sleep 100"), tty=False)
    output = running.output()
    await read_until(output, b"on")
    await here.end(handle.key, "worker-0")
    with anyio.fail_after(20):
        assert [chunk async for chunk in output] == []
        assert await running.wait() >= 128
    await running.close()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_only_a_running_replica_takes_one(here: LocalPlace, engine: LocalEngine, moment: str) -> None:
    handle = await engine.prepare(here.plan())
    if moment == "after":
        handle = await here.launch(engine, here.run("true"))
        await over(engine, handle)
    with pytest.raises(CannotStart, match="worker-0"):
        await engine.exec(handle, "worker-0", ("true",), tty=False)
