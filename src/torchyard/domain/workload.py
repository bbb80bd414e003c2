"""A workload and its attempts, as they are remembered. Changed by lifecycle.decide only."""

import enum
from dataclasses import dataclass
from datetime import datetime

from torchyard.domain.cause import Diagnosis
from torchyard.domain.finding import Finding
from torchyard.domain.launch import Handle, ResumeSource
from torchyard.domain.observation import ReplicaSeen
from torchyard.domain.spec import Kind, Submission


class Phase(enum.StrEnum):
    """Run:ai's phases."""

    CREATING = "Creating"
    INITIALIZING = "Initializing"
    RESUMING = "Resuming"
    PENDING = "Pending"
    DELETING = "Deleting"
    RUNNING = "Running"
    UPDATING = "Updating"
    STOPPED = "Stopped"
    STOPPING = "Stopping"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    UNKNOWN = "Unknown"

    @property
    def terminal(self) -> bool:
        """It never starts again by itself."""
        return self in (Phase.STOPPED, Phase.FAILED, Phase.COMPLETED)


class Desired(enum.StrEnum):
    """What the user wants of it."""

    RUNNING = "Running"
    STOPPED = "Stopped"
    DELETED = "Deleted"


class EndingBecause(enum.StrEnum):
    """Why we ask a running attempt to end."""

    FAULT = "fault"
    STOP = "stop"
    DEADLINE = "deadline"
    PENDING_DEADLINE = "pendingDeadline"
    WITHDRAWN = "withdrawn"


DRAFT_ID = "00000000-0000-0000-0000-000000000000"
"""Of a workload that is only looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The moment when we first asked an attempt to end, and how much time it was given (seconds)."""

    because: EndingBecause
    at: datetime
    grace: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One launch of all replicas. Launch has two steps: `handle` is committed before `started` may become true."""

    number: int
    reason: str
    """Why it was made, one sentence."""
    created_at: datetime
    """When it was granted its devices."""
    devices: int = 0
    handle: Handle | None = None
    started: bool = False
    running_at: datetime | None = None
    ending: Ending | None = None
    ended_at: datetime | None = None
    replicas: tuple[ReplicaSeen, ...] = ()
    """As last seen."""
    diagnosis: Diagnosis | None = None
    withdrawn: bool = False
    """It was taken back before it ran, at no cost."""
    start_step: int | None = None
    """The first step that its log shows: 0 or 1 after a retry means that it did not resume."""

    @property
    def over(self) -> bool:
        """It has ended for good."""
        return self.ended_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far training is, read from the log. Nothing is known that is None."""

    step: int | None = None
    total: int | None = None
    unit: str = "step"
    loss: float | None = None
    eta: float | None = None
    """Seconds to the end at the pace of late."""
    at: datetime | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that the workload's `notify` is to be told, kept until it was."""

    kind: str
    """ended | failed | waiting"""
    sentence: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """All that is remembered of a workload, but its logs and events."""

    id: str
    name: str
    kind: Kind
    project: str
    cluster: str
    submission: Submission
    created_at: datetime
    created_by: str
    phase: Phase
    phase_at: datetime
    """Since when it is in this phase."""
    reason: str = ""
    """Why it is in this phase, one sentence."""
    desired: Desired = Desired.RUNNING
    findings: tuple[Finding, ...] = ()
    resume: ResumeSource | None = None
    """Where the checkpoint lies that it continues from, whatever becomes of the workload that wrote it."""
    sealed: bool = False
    """A sealed environment is kept for it."""
    attempt: Attempt | None = None
    """The attempt of now, or the last one."""
    attempts: int = 0
    """Attempts made so far; the number of the last one."""
    user_faults: int = 0
    infra_losses: int = 0
    equal_faults: int = 0
    """How many of the last faults in a row were the same, with no newer step or checkpoint between them."""
    last_fault: str | None = None
    best_step: int | None = None
    not_before: datetime | None = None
    """Back-off: the next attempt starts no earlier."""
    last_launch_at: datetime | None = None
    completed_at: datetime | None = None
    deleted_at: datetime | None = None
    notices: tuple[Notice, ...] = ()
    run_seconds: float = 0.0
    """Time its ended attempts ran, together."""

    @property
    def waiting(self) -> bool:
        """It wants to run and holds nothing: the queue's business."""
        return (
            self.desired is Desired.RUNNING and not self.phase.terminal and (self.attempt is None or self.attempt.over)
        )

    @property
    def active(self) -> bool:
        """An attempt of it is under way."""
        return self.attempt is not None and not self.attempt.over

    @property
    def settled(self) -> bool:
        """Nothing is left to do for it, unless a user asks."""
        if self.deleted_at is not None:
            return True
        asleep = self.phase.terminal and self.desired is not Desired.DELETED
        return asleep and not self.active and not self.notices
