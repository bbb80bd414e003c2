"""What every action of control needs at hand: settings, store, engines, and the means to wake the loop."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from weakref import WeakValueDictionary

from sqlalchemy import Connection
from sqlalchemy import Engine as Database

from torchyard.control.feed import Feed
from torchyard.control.throttle import Throttle
from torchyard.domain.errors import NotFound
from torchyard.domain.workload import Phase, Workload
from torchyard.engines.engine import Engine
from torchyard.settings import Settings
from torchyard.store.database import read, write
from torchyard.store.sealing import Sealer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks for something."""

    name: str
    id: str = ""
    """The user's; empty for the server itself."""
    owner: bool = False
    """The OS user who owns the server."""


class Bell:
    """Wakes the loop: for one workload, or for the queue."""

    def __init__(self) -> None:
        self._workloads: dict[str, None] = {}
        self.rung = asyncio.Event()
        self.queue = asyncio.Event()

    def ring(self, workload_id: str) -> None:
        """This workload is to be looked at."""
        self._workloads[workload_id] = None
        self.rung.set()

    def take(self) -> tuple[str, ...]:
        """Workloads that the bell was rung for since the last call."""
        taken = tuple(self._workloads)
        self._workloads.clear()
        self.rung.clear()
        return taken


class Board:
    """Workloads that are not settled, as this server, the only writer, last saved them."""

    def __init__(self) -> None:
        self._live: dict[str, Workload] = {}
        self._ended: list[Workload] = []
        self.why_waiting: dict[str, str] = {}
        """The queue's sentences of this moment. Not saved: they change for everybody whenever somebody starts."""
        self.unwritten: dict[str, str] = {}
        """Why what has happened to a workload could not be saved yet."""

    def put(self, workload: Workload) -> None:
        """Remember it while there is something left to do for it."""
        if workload.settled:
            self._live.pop(workload.id, None)
        else:
            self._live[workload.id] = workload

    def get(self, workload_id: str) -> Workload | None:
        return self._live.get(workload_id)

    def end(self, workload: Workload) -> None:
        """Its attempt is over."""
        self._ended.append(workload)

    def take_ended(self) -> tuple[Workload, ...]:
        """Workloads whose attempt has ended since the last call, as they were then."""
        taken, self._ended = tuple(self._ended), []
        return taken

    def of_now(self, workload: Workload) -> Workload:
        """The workload with what cannot be read in the store: why it waits, or that nothing can be saved of it."""
        unwritten = self.unwritten.get(workload.id)
        if unwritten is not None:
            phase = Phase.UNKNOWN if workload.active else workload.phase
            return replace(workload, phase=phase, reason=f"what happens to it cannot be written down: {unwritten}")
        sentence = self.why_waiting.get(workload.id)
        if sentence is None or workload.phase is not Phase.PENDING:
            return workload
        return replace(workload, reason=sentence)

    def all(self) -> tuple[Workload, ...]:
        return tuple(self._live.values())


@dataclass(frozen=True, slots=True)
class Yard:
    """The hands' tools. One for each server."""

    settings: Settings
    database: Database
    engines: Mapping[str, Engine]
    """By the cluster's name."""
    sealer: Sealer
    holder: str
    """Names this server in leases."""
    owner: Actor = Actor("torchyard")
    """The OS user who owns the server."""
    feed: Feed = field(default_factory=Feed)
    bell: Bell = field(default_factory=Bell)
    board: Board = field(default_factory=Board)
    throttle: Throttle = field(default_factory=Throttle)
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    """Passwords are worked on in turn."""
    locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def lock(self, workload_id: str) -> asyncio.Lock:
        """Held by whoever changes this workload."""
        lock = self.locks.get(workload_id)
        if lock is None:
            lock = self.locks[workload_id] = asyncio.Lock()
        return lock

    async def reading(self, ask: Callable[[Connection], T]) -> T:
        """Read from the store in another thread, in one transaction."""

        def run() -> T:
            with read(self.database) as connection:
                return ask(connection)

        return await asyncio.to_thread(run)

    async def writing(self, act: Callable[[Connection], T]) -> T:
        """Write to the store in another thread, all or nothing."""

        def run() -> T:
            with write(self.database) as connection:
                return act(connection)

        return await asyncio.to_thread(run)

    def engine(self, cluster: str) -> Engine:
        """The engine of a cluster. Raises NotFound with the names that there are."""
        engine = self.engines.get(cluster)
        if engine is None:
            raise NotFound(f"there is no cluster {cluster!r}", f"attached clusters: {', '.join(sorted(self.engines))}")
        return engine
