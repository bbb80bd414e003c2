"""A decision in the making: the workload as it becomes, and what happened on the way."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from torchyard.domain.event import Event, EventType
from torchyard.domain.workload import Attempt, Notice, Phase, Workload


@dataclass(slots=True)
class Draft:
    """The decision in the making."""

    w: Workload
    now: datetime
    events: list[Event] = field(default_factory=list)

    def note(self, reason: str, message: str, warning: bool = False, replica: str | None = None) -> None:
        """Something happened."""
        self.events.append(
            Event(
                reason=reason,
                message=message,
                at=self.now,
                type=EventType.WARNING if warning else EventType.NORMAL,
                attempt=self.w.attempt.number if self.w.attempt else None,
                replica=replica,
            )
        )

    def enter(self, phase: Phase, reason: str, warning: bool = False) -> None:
        """It is in this phase now, for this reason; a new phase is an event."""
        if phase is not self.w.phase:
            self.w = replace(self.w, phase=phase, phase_at=self.now, reason=reason)
            self.note("Phase", f"{phase.value}: {reason}", warning=warning)
        elif reason != self.w.reason:
            self.w = replace(self.w, reason=reason)

    def tell(self, kind: str, sentence: str) -> None:
        """Its receiver, if it has one, is to be told."""
        if self.w.submission.torchyard.notify is not None:
            notice = Notice(kind=kind, sentence=sentence, at=self.now)
            self.w = replace(self.w, notices=(*self.w.notices, notice))

    def set_attempt(self, attempt: Attempt) -> None:
        """The attempt of now has become this."""
        self.w = replace(self.w, attempt=attempt)

    def settle(self, phase: Phase, sentence: str, warning: bool = False) -> None:
        """The last phase, unless a user asks for more."""
        if phase.terminal:
            self.w = replace(self.w, completed_at=self.now, not_before=None)
        self.enter(phase, sentence, warning=warning)
        if phase.terminal:
            self.tell("failed" if phase is Phase.FAILED else "ended", f"{self.w.name} {phase.value}: {sentence}")
