"""What is on the terminal while a workload is followed: log lines above, redrawn lines and a bar below.

Knows text only. When it is not a terminal there is no bar, and of a redrawn line the last state is written.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from torchyard.cli.output import paint
from torchyard.client.logs import Line

LONGEST = 1 << 20
"""Characters of an unended line that are held back."""
_CSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

Source = tuple[str, int | None, str]


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of what a source has written: a line that will be redrawn, or one that goes on."""

    text: str
    redraw: bool
    at: str


@dataclass(slots=True)
class Screen:
    """The owner of stdout and stderr while following."""

    out: IO[str]
    err: IO[str]
    live: bool
    """Both are one terminal."""
    width: Callable[[], int]
    colour: bool = False
    several: bool = False
    """Several replicas or ranks speak: lines tell who."""
    timestamps: bool = False
    apart: bool = True
    """What replicas write to stderr goes to stderr."""
    _tails: dict[Source, Tail] = field(default_factory=dict)
    _bar: str = ""
    _painted: list[str] = field(default_factory=list)
    _label_width: int = 0
    _first: tuple[str, int | None] | None = None
    _last: IO[str] | None = None

    def line(self, line: Line) -> None:
        """A record of the log."""
        if line.kind[:1] == "t":
            self.say(line.text)
            return
        self._hear(line.replica, line.rank)
        source = (line.replica, line.rank, line.kind[:1])
        before = self._tails.get(source)
        going_on = before is not None and not before.redraw
        text = before.text + line.text if before is not None and going_on else line.text
        match line.kind[1:2]:
            case "r":
                self._tails[source] = Tail(text, True, line.at)
            case "c" if len(text) < LONGEST:
                self._tails[source] = Tail(text, False, before.at if before is not None and going_on else line.at)
            case _:
                self._tails.pop(source, None)
                self._write(source, text, before.at if before is not None and going_on else line.at)

    def say(self, text: str) -> None:
        """A sentence of torchyard's own."""
        self._clear()
        self._to(self.out if self.live else self.err, paint(text, "2" if self.colour else "") + "\n")

    def bar(self, text: str) -> None:
        """What stands at the very bottom; nothing where it is no terminal."""
        self._bar = text

    def flush(self) -> None:
        """Show everything."""
        if self.live:
            below = [self._label(*source[:2]) + tail.text for source, tail in self._tails.items()]
            rows = [_cut(row, self.width() - 1) for row in [*below, *filter(None, [self._bar])]]
            if rows != self._painted:
                self._clear()
                self.out.write("\n".join(rows))
                self._painted = rows
        self.err.flush()
        self.out.flush()

    def close(self) -> None:
        """Leave the last state of every line behind, without the bar."""
        self._bar = ""
        for source, tail in list(self._tails.items()):
            self._write(source, tail.text, tail.at)
        self._tails.clear()
        self._clear()
        self.out.flush()

    def _write(self, source: Source, text: str, at: str) -> None:
        self._clear()
        stream = self.err if source[2] == "e" and self.apart and not self.live else self.out
        self._to(stream, (f"{at} " if self.timestamps else "") + self._label(*source[:2]) + text + "\n")

    def _to(self, stream: IO[str], text: str) -> None:
        # What was written first is seen first, also where both end up in one file.
        other = self.err if stream is self.out else self.out
        if self._last is other:
            other.flush()
        self._last = stream
        stream.write(text)

    def _hear(self, replica: str, rank: int | None) -> None:
        # A launcher and its only rank are one speaker.
        if rank is None:
            return
        if self._first is None:
            self._first = (replica, rank)
        self.several = self.several or self._first != (replica, rank)

    def _label(self, replica: str, rank: int | None) -> str:
        if not self.several:
            return ""
        name = replica if rank is None else f"{replica}/{rank}"
        self._label_width = max(self._label_width, len(name))
        return paint(f"{name:<{self._label_width}} | ", "36" if self.colour else "")

    def _clear(self) -> None:
        if self._painted:
            self.out.write("\r" + "\x1b[A" * (len(self._painted) - 1) + "\x1b[J")
            self._painted = []


def _cut(text: str, width: int) -> str:
    """As much of a line as fits, without colours: a line that wraps could not be redrawn."""
    plain = _CSI.sub("", text).replace("\t", " ").replace("\r", "")
    used = 0
    for index, letter in enumerate(plain):
        used += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if used > width:
            return plain[:index]
    return plain


def progress_bar(progress: dict[str, object], width: int) -> str:
    """`epoch 3/10 [=====>    ] 30%  loss 0.12  1m20s left`; without a total no bar."""
    step, total, unit = progress.get("step"), progress.get("total"), progress.get("unit") or "step"
    loss, eta = progress.get("loss"), progress.get("eta")
    if not isinstance(step, int):
        return ""
    tail = "".join(
        (
            f"  loss {loss:.4g}" if isinstance(loss, int | float) else "",
            f"  {_left(eta)} left" if isinstance(eta, int | float) and eta >= 1 else "",
        )
    )
    if not isinstance(total, int) or total <= 0:
        return f"{unit} {step}{tail}"
    share = min(1.0, max(0.0, step / total))
    head, rest = f"{unit} {step}/{total} ", f" {share:4.0%}{tail}"
    room = min(40, width - len(head) - len(rest) - 3)
    if room < 8:
        return (head + rest.lstrip())[: max(0, width - 1)]
    full = round(share * room)
    return f"{head}[{'=' * full}{' ' * (room - full)}]{rest}"


def _left(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"
