"""All facts that a judgement on an ended attempt may use. Whoever collects them knows where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchyard.domain.observation import LogLine, Observation
from torchyard.domain.workload import EndingBecause


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One attempt that is over. Everything after `trust_exit_code` may be unknown."""

    observation: Observation
    logs: Mapping[str, tuple[LogLine, ...]]
    """The last lines of each replica, in order."""
    nproc: Mapping[str, int]
    """Ranks of each replica, in plan order: the first replica is node 0."""
    asked_to_end: EndingBecause | None = None
    trust_exit_code: bool = False
    port: int | None = None
    """The rendezvous port that torchyard gave the attempt; None: unknown."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """What each replica runs, as a user would type it."""
    shm: Mapping[str, int | None] = field(default_factory=dict)
    """Bytes of each replica's /dev/shm; None: the machine's own."""
    free: Mapping[str, int] = field(default_factory=dict)
    """Bytes that are free on disks that are nearly full."""
    pattern: str | None = None
    """`torchyard.progress.pattern` of the spec."""

    def first_rank(self, replica: str) -> int:
        """Global rank of the replica's local rank 0."""
        first = 0
        for name, count in self.nproc.items():
            if name == replica:
                return first
            first += count
        return 0
