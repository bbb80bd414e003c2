"""Who failed first? Every rank or command that may have, in order of blame. Knows nothing of causes and budgets.

Survivors of a failure end too, about a second later: with a connection error of their own, by the SIGTERM of their
torchrun, or because we stopped them. They never come before one that failed by itself.
"""

import enum
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from torchyard.diagnosis import report
from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.exception import Raised, spoken, uncaught
from torchyard.diagnosis.lines import Line, texts, whole
from torchyard.domain.observation import RankSeen, ReplicaSeen

_TERM, _KILL = 15, 9
_ABORT = 6
_CONNECTION = re.compile(
    r"Connection (?:closed by|reset by|refused|aborted)|Connection reset|Broken ?pipe|remote process exited"
    r"|DistBackendError|DistNetworkError|DistStoreError|ConnectionResetError|failed to recv|recvValue failed"
    r"|Timed out waiting \d+ms|timed out after \d+ms|[Ww]ait timeout|Application timeout caused pair closure"
    r"|Watchdog caught collective operation timeout|socketProgress|NCCL communicator was aborted",
)
_TICK = timedelta(milliseconds=1)
_START_SLACK = timedelta(milliseconds=100)


class Blame(enum.IntEnum):
    """How it came to end, the most telling first."""

    OWN = 0
    CONSEQUENCE = 1
    TERMINATED = 2
    BY_US = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A rank that did not end well, or the command of a replica (`rank` None)."""

    replica: str
    rank: int | None
    code: int | None
    signal: int | None
    at: datetime | None
    raised: Raised | None
    lines: tuple[Line, ...]
    """Its own output."""
    launcher: tuple[Line, ...]
    """What its replica's launcher and shell said."""
    blame: Blame
    command: str | None = None
    """Of a command inside the replica's own, such as the torchrun of a script."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One replica and what it printed."""

    seen: ReplicaSeen
    lines: tuple[Line, ...]
    launcher: tuple[Line, ...]
    reports: tuple[report.Report, ...]

    @property
    def generation(self) -> tuple[RankSeen, ...]:
        """The ranks of the last torchrun's last generation."""
        ranks = self.seen.ranks
        if not ranks:
            return ()
        last = max((r.launcher, r.restart) for r in ranks)
        return tuple(r for r in ranks if (r.launcher, r.restart) == last)

    @property
    def launched(self) -> bool:
        """A torchrun ran here: what bears no rank is not a rank's output."""
        return bool(self.seen.launchers or self.seen.ranks)

    @property
    def last_report(self) -> report.Report | None:
        """The last failure report of a torchrun, unless another torchrun started after it."""
        if not self.reports or not self.launched:
            return None
        last = self.reports[-1]
        later = any(rank.started_at > last.at for rank in self.seen.ranks)
        return None if later else last


def scene(evidence: Evidence, replica: ReplicaSeen) -> Scene:
    """A replica with its log put together."""
    lines = whole(evidence.logs.get(replica.name, ()))
    launcher = tuple(line for line in lines if line.rank is None)
    return Scene(replica, lines, launcher, report.reports(launcher))


def suspects(evidence: Evidence, scenes: tuple[Scene, ...]) -> tuple[Suspect, ...]:
    """All that did not end well, the one to blame first."""
    asked = _asked_at(scenes)
    found = [s for one in scenes for s in _of_replica(evidence, one, asked)]
    return tuple(sorted(found, key=lambda s: (s.blame, s.at is None, s.at or evidence.observation.at)))


def _asked_at(scenes: tuple[Scene, ...]) -> datetime | None:
    """No replica was asked to end for another's fault before this moment."""
    ends = [s.seen.ended_at for s in scenes if s.seen.failed and not s.seen.stopped and s.seen.ended_at]
    return min(ends, default=None)


def _of_replica(evidence: Evidence, one: Scene, asked: datetime | None) -> list[Suspect]:
    ranks = [s for s in _of_ranks(evidence, one) if s.signal is not None or s.code != 0]
    ranks = [_blamed(s, one, asked) for s in ranks]
    if not one.seen.failed:
        return ranks
    command = _of_command(evidence, one, asked)
    if not ranks:
        return [command]
    if command.blame is Blame.OWN and _command_first(one, command, ranks):
        return [command, *(replace(s, blame=max(s.blame, Blame.CONSEQUENCE)) for s in ranks)]
    return ranks


def _command_first(one: Scene, command: Suspect, ranks: list[Suspect]) -> bool:
    """The command (bash, torchrun) was killed over its ranks: torchrun had no word about a rank that failed."""
    if command.signal is None or one.last_report is not None:
        return False
    begun = min((r.started_at for r in one.generation), default=None)
    said = [f for f in report.failed_lines(one.launcher) if begun is None or f.at >= begun]
    ended = report.signalled(one.launcher) is not None
    spared = ended or all(s.signal in (_TERM, _KILL, 1) or s.blame is not Blame.OWN for s in ranks)
    return spared and not said


def _of_ranks(evidence: Evidence, one: Scene) -> list[Suspect]:
    told = _told(evidence, one)
    found = []
    for rank in one.generation:
        own = _own(one, rank.rank, rank.started_at)
        said = told.pop(rank.rank, None)
        code, signal, at = rank.code, rank.signal, rank.ended_at
        if code is None and signal is None:
            if said is None:
                continue
            code, signal = said.code, said.signal
        at = at or (said.at if said else None) or (own[-1].at if own else one.seen.ended_at)
        found.append(_suspect(one, rank.rank, code, signal, at, own))
    for number, said in told.items():
        found.append(_suspect(one, number, said.code, said.signal, said.at, _own(one, number, None)))
    return found


def _told(evidence: Evidence, one: Scene) -> dict[int, report.RankFailed]:
    """What torchrun said of the failing ranks of its last generation, by global rank."""
    if not one.launched:
        return {}
    begun = min((r.started_at for r in one.generation), default=None)
    first = evidence.first_rank(one.seen.name)
    lines = report.failed_lines(one.launcher)
    fresh = [f for f in lines if f.at >= begun] if begun else list(lines[-1:])
    told = {first + failed.local_rank: failed for failed in fresh}
    last = one.last_report
    if last is not None:
        later = [replace(other, at=last.at + _TICK) for other in last.others]
        for failed in (last.root, *later):
            told.setdefault(first + failed.local_rank if failed.rank is None else failed.rank, failed)
    return told


def _own(one: Scene, rank: int, since: datetime | None) -> tuple[Line, ...]:
    start = since - _START_SLACK if since else None
    return tuple(line for line in one.lines if line.rank == rank and (start is None or line.at >= start))


def _suspect(
    one: Scene, rank: int | None, code: int | None, signal: int | None, at: datetime | None, own: tuple[Line, ...]
) -> Suspect:
    return Suspect(
        replica=one.seen.name,
        rank=rank,
        code=code,
        signal=signal,
        at=at,
        raised=_raised(own, killed=signal not in (None, _ABORT)),
        lines=own,
        launcher=one.launcher,
        blame=Blame.OWN,
    )


def _raised(own: tuple[Line, ...], killed: bool) -> Raised | None:
    """Its last uncaught error. What was killed did not end by an error that it had printed before."""
    if killed:
        return None
    said = texts(line for line in own if line.error)
    return uncaught(said) or uncaught(texts(own)) or spoken(texts(own))


def _blamed(suspect: Suspect, one: Scene, asked: datetime | None) -> Suspect:
    root = one.last_report.root if one.last_report else None
    is_root = root is not None and suspect.rank == root.rank
    if _ended_by_us(suspect, one, asked):
        return replace(suspect, blame=Blame.BY_US)
    if (suspect.signal == _TERM or suspect.code == 128 + _TERM) and not is_root:
        return replace(suspect, blame=Blame.TERMINATED)
    if _is_connection(suspect):
        return replace(suspect, blame=Blame.CONSEQUENCE)
    return suspect


def _ended_by_us(suspect: Suspect, one: Scene, asked: datetime | None) -> bool:
    if not one.seen.stopped:
        return False
    return asked is None or suspect.at is None or suspect.at >= asked


def _is_connection(suspect: Suspect) -> bool:
    if suspect.raised is not None and _CONNECTION.search(suspect.raised.text):
        return "EADDRINUSE" not in suspect.raised.text
    return suspect.signal == _ABORT and any(_CONNECTION.search(line.text) for line in suspect.lines[-60:])


def _of_command(evidence: Evidence, one: Scene, asked: datetime | None) -> Suspect:
    """The command of a replica as one that failed, when no rank of it is known to have."""
    replica = one.seen
    code, signal, inner = replica.code, replica.signal, None
    killed = report.killed(one.launcher)
    told = report.signalled(one.launcher) if one.launched else None
    if killed is not None and code == 128 + killed.signal:
        code, signal, inner = None, killed.signal, killed.command
    elif told is not None and signal is None:
        code, signal, inner = None, told, "torchrun"
    lines = one.launcher if one.launcher or one.launched else one.lines
    suspect = _suspect(one, None, code, signal, replica.ended_at, lines)
    ours = _ended_by_us(suspect, one, asked)
    connection = not ours and _is_connection(suspect)
    blame = Blame.BY_US if ours else Blame.CONSEQUENCE if connection else Blame.OWN
    return replace(suspect, blame=blame, command=inner)
