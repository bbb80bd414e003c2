"""What an engine is told to launch: a plan with one entry for each replica, the same words on every engine."""

from dataclasses import dataclass, field

from torchyard.domain.spec import Isolation


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A claim of the project, seen by the replica at `path`."""

    claim: str
    path: str
    read_only: bool = False


DEFAULT_CHECKPOINT = "snapshot.pt"
"""What `resumeFrom` means when it names no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSource:
    """A checkpoint of another workload: its claim, the path inside the claim, and where that workload mounted it."""

    claim: str
    path: str
    mount_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """Empty space at `path`, in memory or on disk, of `size` bytes at most (None: unlimited)."""

    path: str
    memory: bool
    size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """One replica: what to run and with what around it.

    `env` holds what torchyard and the spec set; what the engine adds (the caller's environment, device numbers, the
    rendezvous port) is not in it. `workdir` None means the code's own folder.
    """

    name: str
    node_rank: int
    argv: tuple[str, ...]
    env: dict[str, str]
    nproc: int
    devices: int
    workdir: str | None
    mounts: tuple[Mount, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    shm: int | None = None
    """Bytes of /dev/shm; None: the machine's own."""
    image: str | None = None
    pull: str | None = None
    """When the image is pulled: Always, IfNotPresent or Never; None: as the engine does by itself."""
    by_image: bool = False
    """The image's own entry point runs; `argv`, unless it is empty, stands for the image's own arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """All replicas of one attempt. `key` names the attempt on the engine for ever: `<workload id>-<attempt number>`."""

    key: str
    workload_id: str
    workload: str
    project: str
    attempt: int
    isolation: Isolation
    replicas: tuple[ReplicaPlan, ...]
    code: str | None = None
    """Content hash of the folder that travels; None: the working folder is used in place."""
    grace: float = 30.0
    notes: tuple[str, ...] = field(default=())
    """Sentences that become events: what was chosen and why, and what is not honoured."""

    @property
    def ranks(self) -> int:
        """World size."""
        return sum(replica.nproc for replica in self.replicas)

    @property
    def devices(self) -> int:
        """Devices over all replicas."""
        return sum(replica.devices for replica in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What an engine needs to find an attempt again, after any restart. `ref` is the engine's own (a folder, a UID)."""

    cluster: str
    key: str
    ref: str
