"""The protocol that every engine speaks. Facts out, orders in; no judgement and no memory beyond the handle."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from torchyard.domain.errors import TorchyardError, Unavailable
from torchyard.domain.launch import Handle, LaunchPlan
from torchyard.domain.observation import Capabilities, FileEntry, LogLine, Node, Observation


class Busy(Unavailable):
    """Start could not take the devices: somebody was quicker. Nothing was started that was not running before."""


class CannotStart(TorchyardError):
    """The attempt can never start as it is (no such folder, no such interpreter). The message says what to do."""

    status = 400


@dataclass(frozen=True, slots=True)
class Secrets:
    """The environment that must not be written down."""

    caller: dict[str, str] = field(default_factory=dict, repr=False)
    """The whole environment of whoever submitted."""
    named: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    """By replica: the variables of its spec that look like secrets."""


class Exec(Protocol):
    """A command that runs beside a replica's ranks."""

    async def write(self, data: bytes) -> None:
        """Bytes for its standard input; empty bytes close it."""

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """(1, stdout bytes) and (2, stderr bytes) until it ends."""

    async def resize(self, rows: int, columns: int) -> None:
        """Size of its terminal."""

    async def wait(self) -> int:
        """Its exit code."""

    async def close(self) -> None:
        """End it if it still runs."""


class FileReader(Protocol):
    """A seekable file of a claim, for reading in another thread."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...


class Engine(Protocol):
    """Drives one cluster. Every method may be called again after any crash, on either side."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do here."""

    async def open(self) -> None:
        """Get ready: probe, connect. Called once."""

    async def close(self) -> None:
        """Let go of everything but what runs."""

    async def prepare(self, plan: LaunchPlan) -> Handle:
        """Step one: make everything ready, run nothing. Idempotent by plan.key. Raises CannotStart, Unavailable."""

    async def start(self, handle: Handle, secrets: Secrets) -> None:
        """Step two: let it run. Idempotent: what runs, ran or was stopped is left alone. Raises Busy, CannotStart,
        Unavailable. After all but Busy some replicas may run: call again, or stop."""

    async def observe(self, handle: Handle) -> Observation:
        """What is there now. From the handle alone."""

    async def stop(self, handle: Handle, grace: float, reason: str) -> None:
        """End all replicas within `grace` seconds, and never let them start. Returns at once. Idempotent; a shorter
        grace shortens it."""

    async def remove(self, project: str, workload_id: str) -> None:
        """Forget every attempt of a workload that is over, files and logs too, and what was prepared but never told to
        anybody. Idempotent."""

    def changes(self) -> AsyncIterator[str]:
        """Keys of attempts that may have changed since they were last observed, as it happens. Never ends."""

    def logs(self, handle: Handle, replica: str, after: int, follow: bool) -> AsyncIterator[LogLine]:
        """Lines from byte position `after`; with `follow` until the replica is over."""

    async def log_size(self, handle: Handle, replica: str) -> int:
        """The position behind the last whole line."""

    async def exec(
        self, handle: Handle, replica: str, argv: tuple[str, ...], tty: bool, rows: int = 24, columns: int = 80
    ) -> Exec:
        """Run a command beside the ranks of a running replica."""

    async def make_claim(self, project: str, claim: str) -> None:
        """Make sure that the claim is there."""

    async def remove_claim(self, project: str, claim: str) -> None:
        """Delete the claim with all that is in it."""

    async def list_files(self, project: str, claim: str, path: str) -> tuple[FileEntry, ...]:
        """One folder of a claim, or the file itself. Raises NotFound. Never leaves the claim."""

    async def open_file(self, project: str, claim: str, path: str) -> FileReader:
        """A file of a claim for reading. Raises NotFound."""

    async def put_file(self, project: str, claim: str, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file of a claim, atomically; folders on the way are made."""

    async def remove_file(self, project: str, claim: str, path: str) -> None:
        """Delete a file or folder of a claim."""

    async def nodes(self) -> tuple[Node, ...]:
        """Machines and devices, and who holds them (others' processes counted)."""
