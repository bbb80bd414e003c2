"""Why an attempt ended, and whose budget it costs (design: causes and budgets)."""

import enum
import re
import signal as signals
from dataclasses import dataclass
from datetime import datetime


class Cause(enum.StrEnum):
    """The one reason why an attempt ended."""

    USER = "user"
    MASKED_EXIT = "maskedExit"
    OOM = "oom"
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    NODE_LOST = "nodeLost"
    REBOOT = "reboot"
    SUPERVISOR_LOST = "supervisorLost"
    PORT_TAKEN = "portTaken"
    START = "start"
    STOPPED = "stopped"
    DEADLINE = "deadline"
    IDLE = "idle"
    UNKNOWN = "unknown"


class Budget(enum.Enum):
    """Who pays for the next attempt."""

    USER = "user"
    INFRA = "infra"
    NONE = "none"


INFRA_BUDGET = 20
"""Attempts that may be lost to the machinery before we stop trying."""

_INFRA = {
    Cause.PREEMPTED,
    Cause.EVICTED,
    Cause.NODE_LOST,
    Cause.REBOOT,
    Cause.SUPERVISOR_LOST,
    Cause.PORT_TAKEN,
}
_USER = {Cause.USER, Cause.MASKED_EXIT, Cause.OOM, Cause.UNKNOWN}


def budget_of(cause: Cause) -> Budget:
    """The budget that an attempt which ended by this cause is counted against."""
    if cause in _INFRA:
        return Budget.INFRA
    if cause in _USER:
        return Budget.USER
    return Budget.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What failed first: a rank (or the command of a replica where no rank is known)."""

    replica: str
    rank: int | None = None
    code: int | None = None
    signal: int | None = None
    exception: str | None = None
    """`ValueError: boom`, as the first failing rank printed it last."""
    frame: str | None = None
    """`train.py:12 in step`: the innermost frame of that traceback in the user's own code."""
    at: datetime | None = None
    last_lines: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Equal for faults that are the same fault: exception, frame and exit, without addresses or times."""
        said = re.sub(r"0x[0-9a-f]+|\d+", "#", self.exception) if self.exception else None
        return "|".join(str(part) for part in (said, self.frame, self.code, self.signal))

    @property
    def exit(self) -> str:
        """`exit 1` or `killed by SIGKILL (9)`, for sentences."""
        if self.signal is not None:
            try:
                return f"killed by {signals.Signals(self.signal).name} ({self.signal})"
            except ValueError:
                return f"killed by signal {self.signal}"
        return f"exit {self.code}" if self.code is not None else "ended without an exit record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What classify says of an attempt that ended. `cause` None means that it completed."""

    cause: Cause | None
    sentence: str
    fault: Fault | None = None
    step: int | None = None
    """The furthest step or epoch that the attempt's log shows."""
    signature: str | None = None
    """Name of the known failure that was recognised, if any."""
    hint: str | None = None
    """What to do about it."""
    suspicious: str | None = None
    """For a completed attempt: why its success deserves a look."""
