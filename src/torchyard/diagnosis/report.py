"""What torchrun says of its ranks when one fails. For a launcher's own lines, never for those of a rank."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from torchyard.diagnosis.lines import Line

_FAILED = re.compile(
    r"\] failed \(exitcode: (-?\d{1,6})\) local_rank: (\d{1,6}) \(pid: (\d{1,10})\)"
    r"|multiprocessing\.api:failed \(exitcode: (-?\d{1,6})\) local_rank: (\d{1,6}) \(pid: (\d{1,10})\)"
)
_RANK = re.compile(r"^\s+rank\s+: (\d{1,7}) \(local_rank: (\d{1,6})\)")
_EXIT = re.compile(r"^\s+exitcode\s+: (-?\d{1,6}) \(pid: (\d{1,10})\)")
_CHILD_FAILED = "errors.ChildFailedError"
_ROOT = "Root Cause (first observed failure):"
_RULE = re.compile(r"^={20,}$")
_SIGNALLED = re.compile(r"SignalException: Process \d+ got signal: (\d{1,3})")
_KILLED = re.compile(
    r"^\S.*: line \d+:\s+\d+ (?P<how>Killed|Terminated|Segmentation fault|Aborted|Bus error|Hangup)"
    r"(?:\s+\(core dumped\))?\s+(?P<command>\S.*)$"
)
_HOW = {"Killed": 9, "Terminated": 15, "Segmentation fault": 11, "Aborted": 6, "Bus error": 7, "Hangup": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFailed:
    """One rank that torchrun saw failing. `rank` None: it named only the local rank."""

    rank: int | None
    local_rank: int
    code: int | None
    signal: int | None
    pid: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The failure report at the end of a torchrun. `root` is the rank that it saw failing first."""

    root: RankFailed
    others: tuple[RankFailed, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """A command that a shell saw dying by a signal."""

    command: str
    signal: int
    at: datetime


def failed_lines(lines: Iterable[Line]) -> tuple[RankFailed, ...]:
    """Every `failed (exitcode: N) local_rank: K (pid: P)`: torchrun writes one at the first failure of a generation."""
    found = []
    for line in lines:
        if "failed (exitcode:" in line.text and (match := _FAILED.search(line.text)):
            code, local_rank, pid = (int(group) for group in match.groups() if group is not None)
            found.append(_rank_failed(None, local_rank, code, pid, line.at))
    return tuple(found)


def reports(lines: Sequence[Line]) -> tuple[Report, ...]:
    """All failure reports, the oldest first."""
    found = []
    for number, line in enumerate(lines):
        if _CHILD_FAILED in line.text and not line.text.startswith(" "):
            report = _report(lines[number + 1 :])
            if report is not None:
                found.append(report)
    return tuple(found)


def _report(lines: Sequence[Line]) -> Report | None:
    ranks: list[RankFailed] = []
    root: RankFailed | None = None
    rank: tuple[int, int] | None = None
    in_root = False
    rules = 0
    for line in lines:
        rules += bool(_RULE.match(line.text))
        if rules == 2 or _CHILD_FAILED in line.text:
            break
        in_root = in_root or line.text.strip() == _ROOT
        if match := _RANK.match(line.text):
            rank = (int(match[1]), int(match[2]))
        elif rank is not None and (match := _EXIT.match(line.text)):
            failed = _rank_failed(rank[0], rank[1], int(match[1]), int(match[2]), line.at)
            rank = None
            if in_root:
                root = failed
            else:
                ranks.append(failed)
    return Report(root=root, others=tuple(ranks), at=root.at) if root else None


def _rank_failed(rank: int | None, local_rank: int, exitcode: int, pid: int, at: datetime) -> RankFailed:
    """torchrun writes a signal as a negative exit code."""
    signal = -exitcode if exitcode < 0 else None
    code = exitcode if exitcode >= 0 else None
    return RankFailed(rank=rank, local_rank=local_rank, code=code, signal=signal, pid=pid, at=at)


def signalled(lines: Iterable[Line]) -> int | None:
    """The signal that torchrun says it was ended by."""
    last = None
    for line in lines:
        if match := _SIGNALLED.search(line.text):
            last = int(match[1])
    return last


def killed(lines: Iterable[Line]) -> Killed | None:
    """The last `run.sh: line 2: 24881 Killed  torchrun ...` of a shell."""
    last = None
    for line in lines:
        if match := _KILLED.match(line.text):
            last = Killed(command=match["command"][:200], signal=_HOW[match["how"]], at=line.at)
    return last
