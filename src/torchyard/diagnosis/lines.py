"""Log records put back together into the lines that a person would see. Knows nothing of what they mean."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from torchyard.domain.observation import LogLine

MAX_TEXT = 2000
"""Characters of a line that are looked at."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_PREFIX = re.compile(r"^\[rank\d+\]:(?: |$)")
"""torch puts it before each line of an uncaught error."""


@dataclass(frozen=True, slots=True)
class Line:
    """One whole line. `error` means standard error."""

    at: datetime
    rank: int | None
    error: bool
    text: str


def whole(records: Iterable[LogLine]) -> tuple[Line, ...]:
    """Lines in order of their ends: continued records joined, redraws overwritten, marks of torchyard left out."""
    done: list[Line] = []
    begun: dict[tuple[int | None, str], Line] = {}
    drawn: dict[tuple[int | None, str], Line] = {}
    for record in records:
        stream, more = record.kind[:1], record.kind[1:]
        if stream == "t":
            continue
        key = (record.rank, stream)
        before = begun.pop(key, None)
        text = ((before.text if before else "") + record.text)[:MAX_TEXT]
        line = Line(record.at, record.rank, stream == "e", text if "c" in more else _clean(text))
        if "c" in more:
            begun[key] = line
        elif "r" in more:
            drawn[key] = line if line.text else drawn.get(key, line)
        else:
            bar = drawn.pop(key, None)
            done.append(bar if bar is not None and not line.text else line)
    open_ends = [*drawn.values(), *(replace(line, text=_clean(line.text)) for line in begun.values())]
    return (*done, *sorted(open_ends, key=lambda line: line.at))


def _clean(text: str) -> str:
    return _PREFIX.sub("", _ESCAPES.sub("", text).rstrip())


def texts(lines: Iterable[Line]) -> tuple[str, ...]:
    """Only what they say."""
    return tuple(line.text for line in lines)
