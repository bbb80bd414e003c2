"""How far training is, read from its log with no change to the script. Knows common ways to print it, guesses no total.

Which number counts, when a script prints several: that of `torchyard.progress.pattern` alone where one is given; else
epochs before steps, steps before bars, bars before the fractional epochs of a dict. A number of a lower kind is not
looked at any more once a higher kind was seen. Of several ranks the lowest that tells anything is read, and what has
no rank (the launcher, a download before it) only as long as no rank speaks. Bars that download, load or evaluate are
left out, by their words, their unit (bytes) or, while a larger bar is unfinished, by their smaller total.
"""

from collections import deque
from datetime import datetime

from torchyard.diagnosis.reading import Kind, Reading, compiled, read
from torchyard.domain.observation import LogLine
from torchyard.domain.workload import Progress

PACE_OVER = 20
"""So many last advances make the pace."""
MAX_STEP = 10**15
"""No training counts further: a larger number is something else."""
_NO_RANK = 1 << 30


class Reader:
    """Follows the lines of one attempt. Not shared between attempts: the pace starts anew with each."""

    __slots__ = (
        "_advances", "_at", "_given", "_kind", "_loss", "_pattern", "_rank", "_step", "_total", "_unit",
        "first_step", "furthest",
    )  # fmt: skip

    def __init__(self, total: int | None = None, pattern: str | None = None) -> None:
        self._given = total
        self._pattern = compiled(pattern) if pattern else None
        self._advances: deque[tuple[int, datetime]] = deque(maxlen=PACE_OVER)
        self._kind: Kind | None = None
        self._rank: int | None = None
        self._step: int | None = None
        self._total: int | None = None
        self._unit = "step"
        self._loss: float | None = None
        self._at: datetime | None = None
        self.first_step: int | None = None
        """The first step that the attempt showed."""
        self.furthest: int | None = None

    def read(self, line: LogLine) -> None:
        """Take one line in. Never raises; what tells nothing changes nothing."""
        if line.kind[:1] == "t":
            return
        reading = read(line.text, self._pattern)
        if reading is None or not self._listens(line.rank):
            return
        if reading.loss_said:
            self._loss = reading.loss
            self._at = line.at
        if reading.step is not None and max(reading.step, reading.total or 0) <= MAX_STEP and self._counts(reading):
            self._advance(reading, reading.step, line.at)

    def progress(self, attempt: int, now: datetime) -> Progress | None:
        """What is known; None when the output tells nothing. `now` bounds times of a clock that was set back."""
        if self._at is None:
            return None
        total = self._given if self._given is not None else self._total
        step = self._step
        if step is not None and self._given is not None:
            step = min(step, self._given)
        return Progress(
            step=step,
            total=total if step is not None else None,
            unit=self._unit,
            loss=self._loss,
            eta=self._eta(step, total),
            at=min(self._at, now),
            attempt=attempt,
        )

    def _listens(self, rank: int | None) -> bool:
        """The lowest rank that tells anything is followed."""
        if rank == self._rank:
            return True
        mine = _NO_RANK if self._rank is None else self._rank
        theirs = _NO_RANK if rank is None else rank
        if self._at is None or theirs < mine:
            if self._rank is None and self._at is not None:
                self._forget()
            self._rank = rank
            return True
        return False

    def _forget(self) -> None:
        """What the launcher's own output showed was not the training."""
        self._kind = self._step = self._total = self._loss = self.first_step = self.furthest = None
        self._advances.clear()

    def _counts(self, reading: Reading) -> bool:
        if self._kind is None or reading.kind > self._kind:
            return True
        if reading.kind < self._kind:
            return False
        if reading.kind is not Kind.BAR or reading.total == self._total or self._total is None:
            return True
        finished = self._step is not None and self._step >= self._total
        return finished or reading.total is None or reading.total > self._total

    def _advance(self, reading: Reading, step: int, at: datetime) -> None:
        other = reading.kind is not self._kind
        if other or (reading.kind is Kind.BAR and reading.total != self._total):
            self._advances.clear()
            self._total = None
            if other:
                self.first_step = self.furthest = None
        self._kind, self._unit = reading.kind, reading.unit
        if reading.total is not None:
            self._total = reading.total
        elif self._total is not None and step > self._total:
            self._total = None
        if self.first_step is None:
            self.first_step = step
        self.furthest = step if self.furthest is None else max(self.furthest, step)
        if self._advances and step < self._advances[-1][0]:
            self._advances.clear()
        if not self._advances or step > self._advances[-1][0]:
            self._advances.append((step, at))
        self._step, self._at = step, at

    def _eta(self, step: int | None, total: int | None) -> float | None:
        """From the pace of the last advances: two of them after the first value at least."""
        if step is None or total is None or len(self._advances) < 3:
            return None
        (first, since), (last, until) = self._advances[0], self._advances[-1]
        seconds = (until - since).total_seconds()
        if seconds <= 0 or last <= first:
            return None
        return round(max(0, total - step) * seconds / (last - first), 1)
