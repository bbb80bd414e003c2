"""What lifecycle.decide is told and what it answers: facts seen, effects due."""

from dataclasses import dataclass
from datetime import datetime

from torchyard.domain.cause import Diagnosis
from torchyard.domain.event import Event
from torchyard.domain.launch import Handle
from torchyard.domain.observation import Observation
from torchyard.domain.workload import Desired, Notice, Progress, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A user wants it stopped, resumed (RUNNING) or deleted."""

    desired: Desired
    by: str
    grace: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The queue gave it its devices: a new attempt may be launched."""

    sentence: str
    """`2 replicas x 4 devices = 8 ranks`."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """The queue makes it wait, and says why."""

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Step one of launch is done: this handle may be committed."""

    handle: Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Step two of launch was carried out for this handle."""

    handle: Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The engine would not prepare or start it. `busy`: somebody else has the devices; it goes back to the queue."""

    sentence: str
    busy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindered:
    """The engine could not prepare or start it for now; it is tried again."""

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The engine was looked at. `diagnosis` is there when every replica is over.

    `checkpointed`: a checkpoint newer than the attempt was found.
    """

    observation: Observation
    diagnosis: Diagnosis | None = None
    checkpointed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """The attempt's log showed its first step."""

    attempt: int
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A notice reached its receiver, or was given up."""

    notice: Notice
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The engine has forgotten all attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time passed."""


Seen = (
    Asked | Granted | Queued | Prepared | Started | Refused | Hindered | Observed | Stepped | Delivered | Removed | Tick
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Do step one of launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Do step two of launch for this committed handle."""

    handle: Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End all replicas of this attempt."""

    handle: Handle
    grace: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Let the engine forget all attempts, files included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """Tell the workload's receiver."""

    notice: Notice


Effect = Prepare | Start | Stop | Remove | Deliver


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The workload as it is from now on, what happened, what is to be done, and when to look again at the latest."""

    workload: Workload
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
    wake_at: datetime | None = None
