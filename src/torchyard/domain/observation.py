"""What an engine sees: facts only, no judgement."""

import enum
from dataclasses import dataclass
from datetime import datetime


class ReplicaState(enum.StrEnum):
    """Where a replica stands. PREPARED: nothing runs yet. LOST: it ran and is gone without an exit record."""

    PREPARED = "prepared"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


class LostBecause(enum.StrEnum):
    """What took a replica that left no exit record of its own."""

    SUPERVISOR = "supervisor"
    KEEPER = "keeper"
    REBOOT = "reboot"
    NODE = "node"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSeen:
    """One training process: `restart` counts restarts in one torchrun, `launcher` the torchruns of the replica."""

    rank: int
    local_rank: int
    pid: int
    started_at: datetime
    ended_at: datetime | None = None
    code: int | None = None
    signal: int | None = None
    restart: int = 0
    launcher: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSeen:
    """One replica. `code` or `signal` is set when it ENDED by itself; `reason`: start, image, mount, ..."""

    name: str
    state: ReplicaState
    started_at: datetime | None = None
    ended_at: datetime | None = None
    code: int | None = None
    signal: int | None = None
    lost: LostBecause | None = None
    stopped: bool = False
    """It ended because we asked it to."""
    killed_after_grace: bool = False
    reason: str | None = None
    message: str | None = None
    node: str | None = None
    pid: int | None = None
    devices: tuple[int, ...] = ()
    ranks: tuple[RankSeen, ...] = ()
    launchers: int = 0
    """How many torchruns the replica has started so far."""
    launcher_signal: int | None = None
    """The signal that ended the last of them, which could report nothing then."""
    left_behind: tuple[str, ...] = ()
    oom_kills: int = 0
    lost_log_lines: int = 0

    @property
    def over(self) -> bool:
        """Nothing of it runs any more."""
        return self.state in (ReplicaState.ENDED, ReplicaState.LOST)

    @property
    def failed(self) -> bool:
        """It is over and did not end well."""
        return self.over and (self.state is ReplicaState.LOST or self.code != 0 or self.reason is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All replicas of one attempt, in plan order, at one moment. None: the engine knows nothing of the attempt."""

    at: datetime
    replicas: tuple[ReplicaSeen, ...]
    port: int | None = None
    """The rendezvous port that the attempt was given; None where the engine does not know it."""

    @property
    def gone(self) -> bool:
        """The engine has forgotten the attempt."""
        return not self.replicas

    @property
    def over(self) -> bool:
        """Every replica is over."""
        return all(replica.over for replica in self.replicas)

    @property
    def running(self) -> bool:
        """Every replica runs or has run."""
        return all(r.over or r.state is ReplicaState.RUNNING for r in self.replicas)

    @property
    def failed(self) -> tuple[ReplicaSeen, ...]:
        """Replicas that did not end well, the earliest first."""
        bad = [r for r in self.replicas if r.failed]
        return tuple(sorted(bad, key=lambda r: (r.ended_at is None, r.ended_at or self.at)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a node. `held_by`: an attempt key of ours, or a sentence about whose it is (user and pid)."""

    index: int
    kind: str
    """`cpu` for a CPU slot, else the GPU's name."""
    ours: bool = False
    held_by: str | None = None
    held_since: datetime | None = None
    workload: str | None = None
    """Name of the workload that holds it, where that is known."""

    @property
    def free(self) -> bool:
        """Nobody holds it."""
        return self.held_by is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine of a cluster."""

    name: str
    devices: tuple[Device, ...]
    cpu_cores: int
    memory: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can do here. A False flag makes a rule refuse a spec that needs it, with `why_not`."""

    sandbox: bool = False
    container: bool = False
    exec: bool = True
    files: bool = True
    in_place: bool = False
    """It can run in a folder of the caller's machine."""
    replicas: int | None = None
    """The most that one workload may have."""
    why_not: dict[str, str] | None = None
    """Capability name -> one sentence: why not, and how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of one replica's log. `text` has no line end. `cursor` is the position after it.

    kind: `o` stdout, `e` stderr, `t` a mark of torchyard; then `r` redraw (overwritten by the next of the same rank and
    stream), `c` continued (the next of the same rank and stream goes on with it).
    """

    attempt: int
    replica: str
    cursor: int
    at: datetime
    rank: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file or folder of a claim. `path` is relative to the claim's root."""

    path: str
    folder: bool
    size: int
    modified_at: datetime
