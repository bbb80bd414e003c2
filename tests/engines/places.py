"""Clusters to try engines on. A place outlives its engines: another engine on it is the same cluster after a restart.

The replicas of the local place are puppets: a shell that does, line by line, what a test writes into its FIFO.
"""

import os
import signal
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio

from torchyard.domain.launch import Handle, LaunchPlan, ReplicaPlan
from torchyard.domain.observation import Observation, ReplicaSeen, ReplicaState
from torchyard.domain.spec import Isolation
from torchyard.engines.engine import Engine, Secrets
from torchyard.engines.fake import FakeEngine, FakeWorld
from torchyard.engines.local.engine import LocalEngine
from torchyard.settings import Settings

DEVICES = 4
PATIENCE = 30.0
T = TypeVar("T")
PUPPET = 'echo x >> "$STRINGS/starts"; while read -r line; do eval "$line"; done 3<> "$STRINGS/orders" <&3'

Named = dict[str, dict[str, str]]


def plan(*replicas: ReplicaPlan, number: int = 1, workload_id: str | None = None, **more: Any) -> LaunchPlan:
    """An attempt of a workload of its own."""
    made = workload_id or str(uuid.uuid4())
    facts: dict[str, Any] = {"isolation": Isolation.PROCESS, "project": "default", "workload": "ddp", **more}
    return LaunchPlan(key=f"{made}-{number}", workload_id=made, attempt=number, replicas=replicas, **facts)


def replica(name: str = "worker-0", *argv: str, **more: Any) -> ReplicaPlan:
    """One replica that runs `argv`, in the environment that every plan gives."""
    facts: dict[str, Any] = {"node_rank": 0, "nproc": 1, "devices": 0, "workdir": None, **more}
    return ReplicaPlan(name=name, argv=argv, **{**facts, "env": marks(name, facts.get("env", {}))})


def marks(name: str, env: dict[str, str]) -> dict[str, str]:
    """What `render` puts into every replica's environment, as far as an engine looks at it."""
    return {"TORCHYARD_REPLICA": name, "PYTHONUNBUFFERED": "1", **env}


async def until(look: Callable[[], Awaitable[T]], seconds: float = PATIENCE) -> T:
    """What `look` gives, once that is something."""
    end = time.monotonic() + seconds
    while not (value := await look()):
        assert time.monotonic() < end, f"not within {seconds} s"
        await anyio.sleep(0.02)
    return value


async def reach(engine: Engine, handle: Handle, state: ReplicaState, *names: str) -> Observation:
    """The first observation with these replicas (all of them without names) in this state."""

    async def look() -> Observation | None:
        seen = await engine.observe(handle)
        wanted = [r for r in seen.replicas if r.name in names or not names]
        return seen if wanted and all(r.state is state for r in wanted) else None

    return await until(look)


async def over(engine: Engine, handle: Handle) -> Observation:
    """The first observation in which nothing runs any more."""

    async def look() -> Observation | None:
        seen = await engine.observe(handle)
        return seen if seen.over else None

    return await until(look)


def one(seen: Observation, name: str = "worker-0") -> ReplicaSeen:
    """The replica of that name."""
    return next(r for r in seen.replicas if r.name == name)


class Place(Protocol):
    """A cluster under test."""

    def engine(self) -> Engine:
        """An engine that has just been made; `open` is still to be called."""

    def plan(self, devices: int = 0, replicas: int = 1, **more: Any) -> LaunchPlan:
        """An attempt whose replicas, worker-0 and so on, run until they are told to end."""

    def starts(self, key: str, name: str) -> int:
        """How often the replica was really started."""

    async def end(self, key: str, name: str, code: int | None = 0, signal: int | None = None) -> None:
        """Let a running replica end by itself."""

    async def say(self, key: str, name: str, *lines: str) -> None:
        """Let a running replica print."""

    async def clear(self) -> None:
        """Leave nothing that runs."""


class FakePlace:
    """The fake."""

    def __init__(self) -> None:
        self.world = FakeWorld(devices=DEVICES)

    def engine(self) -> Engine:
        return FakeEngine(self.world)

    def plan(self, devices: int = 0, replicas: int = 1, **more: Any) -> LaunchPlan:
        return plan(*(replica(f"worker-{i}", "true", devices=devices, node_rank=i) for i in range(replicas)), **more)

    def starts(self, key: str, name: str) -> int:
        return self.world.attempts[key].starts.get(name, 0)

    async def end(self, key: str, name: str, code: int | None = 0, signal: int | None = None) -> None:
        self.world.end(key, name, code, signal)

    async def say(self, key: str, name: str, *lines: str) -> None:
        for line in lines:
            self.world.say(key, name, line)

    async def clear(self) -> None:
        self.world.attempts.clear()


class LocalPlace:
    """This machine, with a data folder and device locks of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings = Settings(
            **{"data": folder / "data", "lock_dir": folder / "locks", "cpu_slots": DEVICES, **settings}
        )
        self.keys: list[str] = []
        self._orders: dict[tuple[str, str], int] = {}

    def engine(self) -> LocalEngine:
        return LocalEngine(self.settings)

    def note(self, made: LaunchPlan) -> LaunchPlan:
        """Remember an attempt for `clear`."""
        self.keys.append(made.key)
        return made

    def run(self, *argv: str, number: int = 1, **more: Any) -> LaunchPlan:
        """An attempt of one replica, worker-0, that runs `argv`; `more` is of the replica, or `isolation`, `code`."""
        whole = {name: more.pop(name) for name in ("isolation", "code", "project", "grace") if name in more}
        return self.note(plan(replica("worker-0", *argv, **more), number=number, **whole))

    def plan(self, devices: int = 0, replicas: int = 1, **more: Any) -> LaunchPlan:
        workload_id = str(uuid.uuid4())
        made = [self._puppet(workload_id, f"worker-{i}", i, devices) for i in range(replicas)]
        return self.note(plan(*made, workload_id=workload_id, **more))

    def _puppet(self, workload_id: str, name: str, rank: int, devices: int) -> ReplicaPlan:
        strings = self._strings(f"{workload_id}-1", name)
        strings.mkdir(parents=True)
        os.mkfifo(strings / "orders")
        # Held open: what is written before the puppet listens is kept.
        self._orders[f"{workload_id}-1", name] = os.open(strings / "orders", os.O_RDWR)
        env = {"STRINGS": str(strings), "TORCHYARD_ATTEMPT": f"{workload_id}-1"}
        return replica(name, "sh", "-c", PUPPET, env=env, devices=devices, node_rank=rank)

    def _strings(self, key: str, name: str) -> Path:
        return self.folder / "strings" / key / name

    async def order(self, key: str, name: str, *lines: str) -> None:
        """Let a puppet do something."""
        os.write(self._orders[key, name], "".join(f"{line}\n" for line in lines).encode())

    def starts(self, key: str, name: str) -> int:
        try:
            return (self._strings(key, name) / "starts").read_text().count("x")
        except FileNotFoundError:
            return 0

    async def end(self, key: str, name: str, code: int | None = 0, signal: int | None = None) -> None:
        await self.order(key, name, f"exit {code}" if signal is None else f"kill -{signal} $$")

    async def say(self, key: str, name: str, *lines: str) -> None:
        await self.order(key, name, *(f"echo '{line}'" for line in lines))

    async def launch(self, engine: Engine, made: LaunchPlan, named: Named | None = None, **caller: str) -> Handle:
        """Both steps; `named` are the secrets of each replica's spec."""
        handle = await engine.prepare(made)
        await engine.start(handle, Secrets(caller or {"PATH": os.environ["PATH"]}, named or {}))
        return handle

    async def output(self, made: LaunchPlan, named: Named | None = None, **caller: str) -> list[str]:
        """What an attempt of one replica prints until it ends, which it must do well."""
        engine = self.engine()
        handle = await self.launch(engine, made, named, **caller)
        seen = one(await over(engine, handle), made.replicas[0].name)
        lines = [line async for line in engine.logs(handle, seen.name, 0, follow=False)]
        assert (seen.code, seen.reason) == (0, None), (seen, [line.text for line in lines])
        await engine.close()
        return [line.text for line in lines if line.kind[0] == "o"]

    async def gone(self, key: str) -> None:
        """Wait until nothing of an attempt is left."""

        async def look() -> bool:
            return not self.alive(key)

        await until(look)

    def alive(self, key: str) -> list[int]:
        """Processes that carry the attempt's mark."""
        return [pid for pid in pids() if f"TORCHYARD_ATTEMPT={key}" in environment(pid)]

    async def clear(self) -> None:
        for key in self.keys:
            while left := self.alive(key):
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                await anyio.sleep(0.01)
        while self._orders:
            os.close(self._orders.popitem()[1])


def pids() -> list[int]:
    """All processes of the machine."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def environment(pid: int) -> list[str]:
    """What a process was started with; nothing when it has gone."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def command_line(pid: int) -> str:
    """The words of a process; empty when it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def agents(place: LocalPlace, handle: Handle, name: str) -> dict[str, int]:
    """The pids of a replica's supervisor and keeper."""
    folder = str(Path(handle.ref) / name)
    found: dict[str, int] = {}
    for pid in place.alive(handle.key):
        for module in ("supervisor", "keeper"):
            if f"agent.{module}" in command_line(pid) and f"{folder}" in command_line(pid):
                found[module] = pid
    return found
