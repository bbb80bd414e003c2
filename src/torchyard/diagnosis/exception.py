"""The uncaught error at the end of a process's output, and where in the user's code it was. Knows Python and C++."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_MESSAGE = 300
_HEADER = re.compile(r"(?:^|[^\w'\"])(Original )?Traceback \(most recent call last\):\s*$")
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]{1,1000})", line (?P<line>\d{1,9})(?:, in (?P<function>.{1,200}))?\s*$')
_RAISED = re.compile(r"^(?P<name>[A-Za-z_][\w.]{0,200})(?P<message>:.*)?$")
_ERROR = re.compile(r"^(?:[A-Za-z_]\w{0,80}\.)*(?:\w{1,80}(?:Error|Exception)|KeyboardInterrupt)(?::.*)?$")
_TERMINATE = re.compile(r"^terminate called after throwing an instance of '(?P<name>[^']{1,200})'")
_WHAT = re.compile(r"^\s*what\(\):\s*(?P<message>.*)$")
_LIBRARIES = re.compile(r"/(?:site|dist)-packages/|/lib/python3[^/]*/|^<frozen |/bin/[^/.]+$")
_ABORT_NEAR = 30
"""A C++ abort so few lines after a Python error is the interpreter going down with it."""


@dataclass(frozen=True, slots=True)
class Raised:
    """`text` as in `ValueError: boom`; `frame` as in `train.py:12 in step`, the innermost in the user's own code."""

    text: str
    frame: str | None = None
    after: int = 0
    """How many lines of output follow it."""


@dataclass(slots=True)
class _Parser:
    """State of one pass over the lines."""

    inside: bool = False
    ignored: bool = False
    chained: bool = False
    frame: str | None = None
    raised: Raised | None = None
    at: int = -1
    aborted: bool = False
    cpp: str | None = None
    harmless: set[int] = field(default_factory=set)
    """Lines of errors that Python itself ignored."""

    def feed(self, number: int, text: str) -> None:
        header = _HEADER.search(text)
        if header:
            if not (self.chained or header[1]):
                self.frame = None
            self.inside, self.chained = True, False
        elif text.startswith("Exception ignored in"):
            self.ignored = True
        elif text.startswith(_CHAIN):
            self.chained = True
        elif frame := _FRAME.match(text):
            self.inside = True
            self.frame = _shown(frame) or self.frame
        elif self.inside and text[:1] not in ("", " ", "\t"):
            self._close(number, text)
        elif self.cpp is not None and (what := _WHAT.match(text)):
            self._abort(number, f"{self.cpp}: {what['message']}")
        elif terminate := _TERMINATE.match(text):
            self.cpp = terminate["name"]
            self._abort(number, self.cpp)

    def _close(self, number: int, text: str) -> None:
        self.inside = False
        ignored, self.ignored = self.ignored, False
        if ignored:
            self.harmless.add(number)
        elif _RAISED.match(text):
            self._keep(number, text, self.frame)
            self.aborted = False

    def _abort(self, number: int, text: str) -> None:
        python = self.raised is not None and not self.aborted
        if not python or number - self.at > _ABORT_NEAR:
            self._keep(number, text, None)
            self.aborted = True

    def _keep(self, number: int, text: str, frame: str | None) -> None:
        self.raised, self.at = Raised(_short(text), frame), number


def _parsed(lines: Sequence[str]) -> _Parser:
    parser = _Parser()
    for number, text in enumerate(lines, start=1):
        parser.feed(number, text)
    return parser


def uncaught(lines: Sequence[str]) -> Raised | None:
    """The last error with a traceback, or thrown by C++. None when there is none."""
    parser = _parsed(lines)
    found = parser.raised
    return None if found is None else Raised(found.text, found.frame, len(lines) - parser.at)


def spoken(lines: Sequence[str], within: int = 20) -> Raised | None:
    """The last line that reads like an error, traceback or not, among the last ones that say anything."""
    harmless = _parsed(lines).harmless
    last = [(number, text) for number, text in enumerate(lines, start=1) if text.strip()][-within:]
    for after, (number, text) in enumerate(reversed(last)):
        if _ERROR.match(text) and len(text) < 4 * MAX_MESSAGE and number not in harmless:
            return Raised(_short(text), None, after)
    return None


def _short(text: str) -> str:
    text = text.strip().rstrip(":").strip()
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 3] + "..."


def _shown(frame: re.Match[str]) -> str | None:
    """A frame without its folder, which differs between attempts; None for library code."""
    path = frame["file"]
    if _LIBRARIES.search(path):
        return None
    name = path.rpartition("/")[2]
    where = f"{name}:{frame['line']}"
    return f"{where} in {frame['function']}" if frame["function"] else where
