"""An engine without a world outside: for tests, of torchyard and of what is built on it. The world outlives the engine.

world = FakeWorld(devices=8)
engine = FakeEngine(world)          # another FakeEngine(world) is the same cluster after a restart
world.end(key, "worker-0", code=1)
"""

import asyncio
import io
import posixpath
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from torchyard.domain.errors import NotFound
from torchyard.domain.launch import Handle, LaunchPlan
from torchyard.domain.observation import (
    Capabilities,
    Device,
    FileEntry,
    LogLine,
    Node,
    Observation,
    RankSeen,
    ReplicaSeen,
    ReplicaState,
)
from torchyard.engines.engine import Busy, CannotStart, Exec, FileReader, Secrets

NO_EXEC = "a fake replica runs no commands"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class FakeAttempt:
    """One attempt in the world. `starts` counts how often each replica was really started."""

    plan: LaunchPlan
    replicas: dict[str, ReplicaSeen]
    starts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[LogLine]] = field(default_factory=dict)
    stopped: bool = False
    grace: float | None = None
    secrets: Secrets = field(default_factory=Secrets)


@dataclass(slots=True)
class FakeWorld:
    """The cluster itself. `auto`: what is started runs at once, else `run` says when. `obeys`: a stop works at once."""

    devices: int = 4
    auto: bool = True
    obeys: bool = True
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(
            sandbox=True, container=True, exec=False, in_place=True, why_not={"exec": NO_EXEC}
        )
    )
    foreign: dict[int, str] = field(default_factory=dict)
    """Devices that somebody else holds: index -> whose they are."""
    refuse: str | None = None
    """Every prepare fails with this sentence."""
    attempts: dict[str, FakeAttempt] = field(default_factory=dict)
    files: dict[tuple[str, str], dict[str, tuple[bytes, datetime]]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    listeners: list["asyncio.Queue[str]"] = field(default_factory=list)
    _table: list[Device] = field(default_factory=list)

    def table(self) -> tuple[Device, ...]:
        """Every device and who holds it."""
        while len(self._table) < self.devices:
            self._table.append(Device(index=len(self._table), kind="cpu"))
        for index, holder in self.foreign.items():
            self._table[index] = Device(index=index, kind="cpu", held_by=holder)
        return tuple(self._table)

    def take(self, key: str, count: int) -> None:
        """Give an attempt its devices. Raises Busy when there are not so many free ones."""
        free = [device.index for device in self.table() if device.free]
        if count > len(free):
            raise Busy("the devices were taken by somebody else")
        for index in free[:count]:
            self._table[index] = Device(index=index, kind="cpu", ours=True, held_by=key)

    def _release(self, key: str) -> None:
        for device in self._table:
            if device.held_by == key:
                self._table[device.index] = Device(index=device.index, kind="cpu")

    def _see(self, key: str, replica: str, **facts: object) -> None:
        attempt = self.attempts[key]
        attempt.replicas[replica] = replace(attempt.replicas[replica], **facts)  # type: ignore[arg-type]
        if all(seen.over for seen in attempt.replicas.values()):
            self._release(key)
        for listener in self.listeners:
            listener.put_nowait(key)

    def run(self, key: str) -> None:
        """All started replicas of an attempt run now."""
        for name, seen in self.attempts[key].replicas.items():
            if seen.state is ReplicaState.STARTING:
                self._see(key, name, state=ReplicaState.RUNNING)

    def end(self, key: str, replica: str | None = None, code: int | None = 0, signal: int | None = None) -> None:
        """A replica (all of them without a name) ends by itself."""
        for name, seen in self.attempts[key].replicas.items():
            if replica in (None, name) and not seen.over:
                code = None if signal is not None else code
                self._see(key, name, state=ReplicaState.ENDED, code=code, signal=signal, ended_at=_now())

    def say(self, key: str, replica: str, text: str, rank: int | None = 0, kind: str = "o") -> None:
        """A replica prints a line."""
        attempt = self.attempts[key]
        lines = attempt.lines.setdefault(replica, [])
        lines.append(
            LogLine(
                attempt=attempt.plan.attempt,
                replica=replica,
                cursor=len(lines) + 1,
                at=_now(),
                rank=rank,
                kind=kind,
                text=text,
            )
        )


class FakeEngine:
    """Drives a FakeWorld."""

    def __init__(self, world: FakeWorld, cluster: str = "local") -> None:
        self.world = world
        self._cluster = cluster
        self._changed: asyncio.Queue[str] = asyncio.Queue()
        world.listeners.append(self._changed)

    @property
    def capabilities(self) -> Capabilities:
        return self.world.capabilities

    async def open(self) -> None:
        """Nothing to get ready."""

    async def close(self) -> None:
        if self._changed in self.world.listeners:
            self.world.listeners.remove(self._changed)

    async def prepare(self, plan: LaunchPlan) -> Handle:
        if self.world.refuse is not None:
            raise CannotStart(self.world.refuse)
        if plan.key not in self.world.attempts:
            replicas = {r.name: ReplicaSeen(name=r.name, state=ReplicaState.PREPARED) for r in plan.replicas}
            self.world.attempts[plan.key] = FakeAttempt(plan, replicas)
        return Handle(cluster=self._cluster, key=plan.key, ref=plan.key)

    async def start(self, handle: Handle, secrets: Secrets) -> None:
        attempt = self._attempt(handle)
        fresh = [name for name, seen in attempt.replicas.items() if seen.state is ReplicaState.PREPARED]
        if attempt.stopped or not fresh:
            return
        self.world.take(handle.key, sum(r.devices for r in attempt.plan.replicas if r.name in fresh))
        attempt.secrets = secrets
        ranks = {r.name: r for r in attempt.plan.replicas}
        first = 0
        for name in attempt.replicas:
            nproc = ranks[name].nproc
            seen = tuple(
                RankSeen(rank=first + i, local_rank=i, pid=1000 + first + i, started_at=_now()) for i in range(nproc)
            )
            first += nproc
            if name in fresh:
                attempt.starts[name] = attempt.starts.get(name, 0) + 1
                state = ReplicaState.RUNNING if self.world.auto else ReplicaState.STARTING
                self.world._see(handle.key, name, state=state, started_at=_now(), ranks=seen)

    async def observe(self, handle: Handle) -> Observation:
        attempt = self.world.attempts.get(handle.key)
        return Observation(at=_now(), replicas=() if attempt is None else tuple(attempt.replicas.values()))

    async def stop(self, handle: Handle, grace: float, reason: str) -> None:
        attempt = self.world.attempts.get(handle.key)
        if attempt is None:
            return
        attempt.stopped = True
        attempt.grace = grace if attempt.grace is None else min(grace, attempt.grace)
        for name, seen in attempt.replicas.items():
            if seen.state is ReplicaState.PREPARED:
                self.world._see(handle.key, name, state=ReplicaState.ENDED, stopped=True, ended_at=_now())
            elif self.world.obeys and not seen.over:
                self.world._see(handle.key, name, state=ReplicaState.ENDED, stopped=True, signal=15, ended_at=_now())

    async def remove(self, project: str, workload_id: str) -> None:
        for key in [key for key, known in self.world.attempts.items() if known.plan.workload_id == workload_id]:
            del self.world.attempts[key]
            self.world._release(key)
            self.world.removed.append(key)

    async def changes(self) -> AsyncIterator[str]:
        while True:
            yield await self._changed.get()

    async def logs(self, handle: Handle, replica: str, after: int, follow: bool) -> AsyncIterator[LogLine]:
        while True:
            attempt = self.world.attempts.get(handle.key)
            over = attempt is None or attempt.replicas[replica].over
            for line in (attempt.lines.get(replica, []) if attempt else [])[after:]:
                after = line.cursor
                yield line
            if over or not follow:
                return
            await asyncio.sleep(0.02)

    async def log_size(self, handle: Handle, replica: str) -> int:
        attempt = self.world.attempts.get(handle.key)
        return 0 if attempt is None else len(attempt.lines.get(replica, []))

    async def exec(
        self, handle: Handle, replica: str, argv: tuple[str, ...], tty: bool, rows: int = 24, columns: int = 80
    ) -> Exec:
        raise CannotStart(NO_EXEC)

    async def make_claim(self, project: str, claim: str) -> None:
        self.world.files.setdefault((project, claim), {})

    async def remove_claim(self, project: str, claim: str) -> None:
        self.world.files.pop((project, claim), None)

    async def list_files(self, project: str, claim: str, path: str) -> tuple[FileEntry, ...]:
        files = self._claim(project, claim)
        prefix = "" if path in ("", "/", ".") else path.strip("/") + "/"
        if path.strip("/") in files:
            data, at = files[path.strip("/")]
            return (FileEntry(path=path.strip("/"), folder=False, size=len(data), modified_at=at),)
        found: dict[str, FileEntry] = {}
        for name, (data, at) in files.items():
            if name.startswith(prefix):
                head, slash, _ = name[len(prefix) :].partition("/")
                size = 0 if slash else len(data)
                found[head] = FileEntry(path=prefix + head, folder=bool(slash), size=size, modified_at=at)
        if prefix and not found:
            raise NotFound(f"there is no {path!r} on claim {claim}")
        return tuple(found[name] for name in sorted(found))

    async def open_file(self, project: str, claim: str, path: str) -> FileReader:
        files = self._claim(project, claim)
        if path.strip("/") not in files:
            raise NotFound(f"there is no {path!r} on claim {claim}")
        return io.BytesIO(files[path.strip("/")][0])

    async def put_file(self, project: str, claim: str, path: str, data: AsyncIterator[bytes]) -> None:
        files = self._claim(project, claim)
        files[posixpath.normpath(path).strip("/")] = (b"".join([chunk async for chunk in data]), _now())

    async def remove_file(self, project: str, claim: str, path: str) -> None:
        files = self._claim(project, claim)
        doomed = [n for n in files if n == path.strip("/") or n.startswith(path.strip("/") + "/")]
        if not doomed:
            raise NotFound(f"there is no {path!r} on claim {claim}")
        for name in doomed:
            del files[name]

    async def nodes(self) -> tuple[Node, ...]:
        return (Node(name="fake", devices=self.world.table(), cpu_cores=8, memory=16 * 1024**3),)

    def _attempt(self, handle: Handle) -> FakeAttempt:
        attempt = self.world.attempts.get(handle.key)
        if attempt is None:
            raise CannotStart(f"the cluster does not know {handle.key} any more")
        return attempt

    def _claim(self, project: str, claim: str) -> dict[str, tuple[bytes, datetime]]:
        if claim.startswith("/"):
            return {}
        files = self.world.files.get((project, claim))
        if files is None:
            raise NotFound(f"there is no claim {claim!r} in project {project}")
        return files
