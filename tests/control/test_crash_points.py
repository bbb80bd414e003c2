"""The server dies right before and right after every write and every effect of launch, retry, stop and delete.

The engine's world and the database live on; a new server takes over. Nothing starts twice, nothing runs that was not
committed, and the end is the same as without the crash.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy import Engine as Database

from tests.control.yards import ANN, make_yard, submission, submit_one
from torchyard.control import ask, turn
from torchyard.control.queue import schedule
from torchyard.control.reconcile import reconcile
from torchyard.control.yard import Yard
from torchyard.domain.errors import Conflict, NotFound
from torchyard.domain.launch import Handle, LaunchPlan
from torchyard.domain.workload import Workload
from torchyard.engines.engine import Secrets
from torchyard.engines.fake import FakeEngine, FakeWorld
from torchyard.store import attempts, workloads
from torchyard.store.database import read, write


class Died(BaseException):
    """The server is gone, whatever it was about to do."""


@dataclass
class Reaper:
    """Counts the points where a server can die, and lets it die at one of them."""

    die_at: int | None = None
    passed: int = 0
    dead: bool = False

    def point(self) -> None:
        if self.dead:
            raise Died
        if self.passed == self.die_at:
            self.dead = True
            raise Died
        self.passed += 1


class MortalEngine(FakeEngine):
    """Its server may die around each effect."""

    def __init__(self, world: FakeWorld, reaper: Reaper, database: list[Database]) -> None:
        super().__init__(world)
        self.reaper = reaper
        self.database = database

    async def prepare(self, plan: LaunchPlan) -> Handle:
        self.reaper.point()
        handle = await super().prepare(plan)
        self.reaper.point()
        return handle

    async def start(self, handle: Handle, secrets: Secrets) -> None:
        self.reaper.point()
        with read(self.database[0]) as connection:
            known = [a.handle for a in attempts.listing(connection, handle.key.rpartition("-")[0])]
        assert handle in known, "only what is committed may run"
        await super().start(handle, secrets)
        self.reaper.point()

    async def stop(self, handle: Handle, grace: float, reason: str) -> None:
        self.reaper.point()
        await super().stop(handle, grace, reason)
        self.reaper.point()

    async def remove(self, project: str, workload_id: str) -> None:
        self.reaper.point()
        await super().remove(project, workload_id)
        self.reaper.point()


@dataclass
class Servers:
    """One server after another on the same database and the same world."""

    folder: Path
    reaper: Reaper
    world: FakeWorld = field(default_factory=FakeWorld)

    def __post_init__(self) -> None:
        self.yard = self.start()

    def start(self) -> Yard:
        """A server that finds what the one before it left."""
        place: list[Database] = []
        yard = make_yard(self.folder, MortalEngine(self.world, self.reaper, place))
        place.append(yard.database)
        with read(yard.database) as connection:
            for workload in workloads.live(connection):
                yard.board.put(workload)
        return yard

    def replace(self) -> None:
        """The server has died; the next one takes over and lives on."""
        self.yard.database.dispose()
        self.reaper.dead, self.reaper.die_at = False, None
        self.yard = self.start()
        with write(self.yard.database) as connection:
            workloads.release_others(connection, self.yard.holder)

    async def settle(self) -> None:
        """Work until there is nothing to do; whoever dies is replaced."""
        for _ in range(50):
            before = self.picture()
            try:
                self.yard.bell.queue.clear()
                await schedule(self.yard)
                for workload in self.yard.board.all():
                    await reconcile(self.yard, workload.id)
            except Died:
                self.replace()
                continue
            if before == self.picture() and not self.yard.bell.queue.is_set():
                return
        raise AssertionError("it never comes to rest")

    def picture(self) -> object:
        """Both sides as they are now."""
        return self.yard.board.all(), {key: dict(a.replicas) for key, a in self.world.attempts.items()}

    async def user(self, action: Callable[[Yard], Awaitable[Workload]]) -> None:
        """A user's request. If the server dies over it, the user looks and asks again if need be."""
        try:
            await action(self.yard)
        except Died:
            self.replace()
            try:
                await action(self.yard)
            except (NotFound, Conflict):
                return

    def workload(self) -> Workload:
        with read(self.yard.database) as connection:
            row = connection.execute(workloads.table.select().limit(1)).one()
            found = workloads.fetch(connection, row.id)
        assert found is not None
        return found


@pytest.fixture
def mortal_writes(monkeypatch: pytest.MonkeyPatch) -> Reaper:
    """Every guarded write is two points: before it, and after its commit."""
    reaper = Reaper()

    @contextmanager
    def mortal(database: Database) -> Iterator[Connection]:
        reaper.point()
        with write(database) as connection:
            yield connection
        reaper.point()

    monkeypatch.setattr(turn, "write", mortal)
    return reaper


async def complete(servers: Servers) -> None:
    w = await submit_one(servers.yard, submission())
    await servers.settle()
    servers.world.end(f"{w.id}-1")
    await servers.settle()


async def retry(servers: Servers) -> None:
    w = await submit_one(servers.yard, submission(backoff=1))
    await servers.settle()
    servers.world.end(f"{w.id}-1", "worker-0", code=1)
    await servers.settle()
    servers.world.end(f"{w.id}-2")
    await servers.settle()


async def fail(servers: Servers) -> None:
    w = await submit_one(servers.yard, submission())
    await servers.settle()
    servers.world.end(f"{w.id}-1", "worker-0", signal=9)
    await servers.settle()


async def stop(servers: Servers) -> None:
    w = await submit_one(servers.yard, submission())
    await servers.settle()
    await servers.user(lambda yard: ask.stop(yard, w.id, ANN))
    await servers.settle()


async def stop_at_once(servers: Servers) -> None:
    w = await submit_one(servers.yard, submission())
    await servers.user(lambda yard: ask.stop(yard, w.id, ANN))
    await servers.settle()


async def resume(servers: Servers) -> None:
    await stop(servers)
    w = servers.workload()
    await servers.user(lambda yard: ask.resume(yard, w.id, ANN))
    await servers.settle()
    servers.world.end(f"{w.id}-2")
    await servers.settle()


async def delete(servers: Servers) -> None:
    w = await submit_one(servers.yard, submission())
    await servers.settle()
    await servers.user(lambda yard: ask.delete(yard, w.id, ANN))
    await servers.settle()


STORIES = {
    "complete": (complete, "Completed", 1),
    "retry": (retry, "Completed", 2),
    "fail": (fail, "Failed", 1),
    "stop": (stop, "Stopped", 1),
    "stop_at_once": (stop_at_once, "Stopped", 0),
    "resume": (resume, "Completed", 2),
    "delete": (delete, "Deleting", 1),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_server_may_die_at_every_point(name: str, tmp_path: Path, mortal_writes: Reaper) -> None:
    story, phase, attempts_made = STORIES[name]
    points = _tell(story, tmp_path / "whole", mortal_writes, None, phase, attempts_made)
    assert points >= (1 if name == "stop_at_once" else 10)
    for point in range(points):
        _tell(story, tmp_path / str(point), mortal_writes, point, phase, attempts_made)


def _tell(
    story: Callable[[Servers], Awaitable[None]],
    folder: Path,
    reaper: Reaper,
    die_at: int | None,
    phase: str,
    attempts_made: int,
) -> int:
    """Live through one story, dying at one point of it; how many points there were."""
    folder.mkdir()
    reaper.passed, reaper.dead, reaper.die_at = 0, False, die_at

    async def live() -> Servers:
        servers = Servers(folder, reaper)
        await story(servers)
        return servers

    servers = asyncio.run(live())
    end = servers.workload()
    assert end.phase == phase, f"dying at point {die_at}: {end.reason}"
    assert end.attempts == attempts_made, f"dying at point {die_at}"
    assert (end.deleted_at is not None) == (phase == "Deleting")
    for key, attempt in servers.world.attempts.items():
        assert all(count == 1 for count in attempt.starts.values()), f"{key} started twice, dying at point {die_at}"
        assert all(seen.over for seen in attempt.replicas.values()), f"{key} still runs, dying at point {die_at}"
    servers.yard.database.dispose()
    return reaper.passed
