"""Things that happened to a workload, in the order they happened. Kept after the workload is gone from the engine."""

import enum
from dataclasses import dataclass
from datetime import datetime


class EventType(enum.StrEnum):
    """As in Kubernetes: Warning deserves a look."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One sentence about one workload. `reason` is a CamelCase word that programs can match."""

    reason: str
    message: str
    at: datetime
    type: EventType = EventType.NORMAL
    attempt: int | None = None
    replica: str | None = None
