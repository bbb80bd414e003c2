"""Why did this attempt end? Facts in, one cause, one sentence and the fault out. Decides nothing about retries."""

from dataclasses import replace

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.exception import Raised, spoken, uncaught
from torchyard.diagnosis.lines import Line, texts
from torchyard.diagnosis.signature import Recognised, recognise
from torchyard.diagnosis.signatures.port_taken import port_in
from torchyard.diagnosis.steps import furthest
from torchyard.diagnosis.suspects import Blame, Scene, Suspect, scene, suspects
from torchyard.domain.cause import Cause, Diagnosis, Fault
from torchyard.domain.observation import LostBecause, ReplicaSeen, ReplicaState
from torchyard.domain.workload import EndingBecause

LAST_LINES = 20
MAX_ERROR = 160
_KILL = 9
_NEAR_END = 5
"""A line so close to the end of a log counts as its last word."""
_KEEPER_LOST = "keeperLost"
_LOST = {
    LostBecause.SUPERVISOR: (Cause.SUPERVISOR_LOST, "the supervisor of {} was killed, and its processes with it"),
    LostBecause.KEEPER: (Cause.SUPERVISOR_LOST, "the keeper of {} was killed, and its processes with it"),
    LostBecause.REBOOT: (Cause.REBOOT, "the machine was restarted while {} ran"),
    LostBecause.NODE: (Cause.NODE_LOST, "the node of {} was lost"),
    LostBecause.REMOVED: (Cause.SUPERVISOR_LOST, "{} was removed by somebody else: no record of its end is left"),
}
_ASKED = {
    EndingBecause.STOP: (Cause.STOPPED, "it was stopped as asked"),
    EndingBecause.WITHDRAWN: (Cause.STOPPED, "it was taken back before it ran"),
    EndingBecause.DEADLINE: (Cause.DEADLINE, "its maximum run time was over"),
    EndingBecause.PENDING_DEADLINE: (Cause.START, "it did not start in time"),
}


def classify(evidence: Evidence) -> Diagnosis:
    """The diagnosis of an attempt that is over. `cause` None: it completed."""
    scenes = tuple(scene(evidence, replica) for replica in evidence.observation.replicas)
    diagnosis = _judged(evidence, scenes)
    return replace(diagnosis, step=furthest(evidence))


def _judged(evidence: Evidence, scenes: tuple[Scene, ...]) -> Diagnosis:
    masked = () if evidence.trust_exit_code else tuple(s for s in scenes if is_masked(s))
    if scenes and all(_ended_well(s.seen) for s in scenes) and not masked:
        return _completed(evidence, scenes)
    if evidence.asked_to_end is not None and evidence.asked_to_end is not EndingBecause.FAULT:
        return _as_asked(evidence, evidence.asked_to_end, scenes)
    if not scenes:
        return Diagnosis(cause=Cause.SUPERVISOR_LOST, sentence="the cluster has no record of this attempt any more")
    return _not_started(scenes) or _faulty(evidence, scenes, masked)


def _ended_well(replica: ReplicaSeen) -> bool:
    return replica.state is ReplicaState.ENDED and not replica.failed and not replica.stopped and replica.lost is None


def is_masked(one: Scene) -> bool:
    """Exit 0, though the replica's last torchrun failed: the script went on to another command."""
    if not _ended_well(one.seen):
        return False
    if one.seen.launcher_signal is not None:
        return True
    ranks = one.generation
    if any(rank.signal is not None or rank.code not in (None, 0) for rank in ranks):
        return True
    last = one.last_report
    if last is None:
        return False
    good = {rank.rank for rank in ranks if rank.code == 0}
    return len(good) < len(ranks) or last.root.rank not in good


def _completed(evidence: Evidence, scenes: tuple[Scene, ...]) -> Diagnosis:
    count = len(scenes)
    sentence = "it ended with exit 0" if count == 1 else f"all {count} replicas ended with exit 0"
    suspicious = None if evidence.trust_exit_code else next((s for one in scenes if (s := _suspicious(one))), None)
    return Diagnosis(cause=None, sentence=sentence, suspicious=suspicious)


def _suspicious(one: Scene) -> str | None:
    """Exit 0, but the last words are those of a program that failed."""
    ranks = {line.rank for line in one.lines}
    for rank in sorted(ranks, key=lambda r: -1 if r is None else r):
        own = texts(line for line in one.lines if line.rank == rank and line.text.strip())
        raised = _last_word(uncaught(own)) or _last_word(spoken(own, _NEAR_END))
        if raised is not None:
            who = one.seen.name if rank is None else f"rank {rank} ({one.seen.name})"
            return (
                f"{who} ended with exit 0, but its last lines look like an error that nobody handled: {raised.text}; "
                "a pipe without `set -o pipefail`, `|| true` or a later command hides the exit code of a program"
            )
    return None


def _last_word(raised: Raised | None) -> Raised | None:
    return raised if raised is not None and raised.after < _NEAR_END else None


def _as_asked(evidence: Evidence, asked: EndingBecause, scenes: tuple[Scene, ...]) -> Diagnosis:
    cause, sentence = _ASKED[asked]
    slow = [s.seen.name for s in scenes if s.seen.killed_after_grace]
    if slow:
        sentence += f"; {', '.join(slow)} had not ended within the grace and was killed"
    lines = texts(line for one in scenes for line in one.launcher)
    known = recognise(lines, None, evidence)
    if known is None or known.name != "shutdownTimeout":
        return Diagnosis(cause=cause, sentence=sentence)
    sentence += f"; {known.match.sentence}"
    return Diagnosis(cause=cause, sentence=sentence, signature=known.name, hint=known.match.hint)


def _not_started(scenes: tuple[Scene, ...]) -> Diagnosis | None:
    for one in scenes:
        reason = one.seen.reason
        if reason is not None and reason != _KEEPER_LOST and one.seen.lost is None:
            said = _in_one_line(one.seen.message or "") or f"no message ({reason})"
            fault = Fault(replica=one.seen.name, code=one.seen.code, at=one.seen.ended_at, last_lines=_tail(one.lines))
            return Diagnosis(cause=Cause.START, sentence=f"{one.seen.name} could not start: {said}", fault=fault)
    return None


def _in_one_line(message: str) -> str:
    """What counts of what a program said before it gave up: its errors, else its last words. All is in the log."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return "; ".join((errors or lines)[-2:])


def _faulty(evidence: Evidence, scenes: tuple[Scene, ...], masked: tuple[Scene, ...]) -> Diagnosis:
    found = suspects(evidence, scenes)
    suspect = found[0] if found else None
    lost = _lost(scenes)
    if lost is not None and not _earlier(suspect, lost):
        return _diagnosis_of_lost(lost)
    if suspect is None and masked:
        return _launcher_killed(masked[0].seen)
    if suspect is None:
        return Diagnosis(cause=Cause.UNKNOWN, sentence="it ended, and nothing tells why")
    fault = _fault(suspect)
    known = recognise(texts([*suspect.launcher, *suspect.lines]), fault, evidence)
    cause, sentence = _cause(evidence, scenes, suspect, fault)
    if cause is Cause.USER and all(_ended_well(s.seen) for s in scenes):
        cause = Cause.MASKED_EXIT
        names = ", ".join(one.seen.name for one in masked)
        sentence = f"{names} ended with exit 0, but its last torchrun had failed: {sentence}"
    if known is not None and cause is not Cause.OOM:
        sentence += f": {known.match.sentence}"
    return _with_known(Diagnosis(cause=cause, sentence=sentence, fault=fault), known)


def _launcher_killed(replica: ReplicaSeen) -> Diagnosis:
    fault = Fault(replica=replica.name, signal=replica.launcher_signal, at=replica.ended_at)
    sentence = f"{replica.name} ended with exit 0, but its last torchrun was {fault.exit}"
    return Diagnosis(cause=Cause.MASKED_EXIT, sentence=sentence, fault=fault)


def _with_known(diagnosis: Diagnosis, known: Recognised | None) -> Diagnosis:
    if known is None:
        return diagnosis
    return replace(diagnosis, signature=known.name, hint=known.match.hint)


def _lost(scenes: tuple[Scene, ...]) -> ReplicaSeen | None:
    lost = [s.seen for s in scenes if _because(s.seen) is not None]
    return min(lost, key=lambda r: (r.ended_at is None, r.ended_at.timestamp() if r.ended_at else 0.0), default=None)


def _because(replica: ReplicaSeen) -> LostBecause | None:
    if replica.lost is not None:
        return replica.lost
    if replica.reason == _KEEPER_LOST:
        return LostBecause.KEEPER
    return LostBecause.SUPERVISOR if replica.state is ReplicaState.LOST else None


def _diagnosis_of_lost(replica: ReplicaSeen) -> Diagnosis:
    because = _because(replica)
    assert because is not None
    cause, sentence = _LOST[because]
    fault = Fault(replica=replica.name, code=replica.code, signal=replica.signal, at=replica.ended_at)
    return Diagnosis(cause=cause, sentence=sentence.format(replica.name), fault=fault)


def _earlier(suspect: Suspect | None, lost: ReplicaSeen) -> bool:
    """Another replica failed by itself before this one was lost."""
    if suspect is None or suspect.blame is not Blame.OWN or suspect.replica == lost.name:
        return False
    return suspect.at is not None and lost.ended_at is not None and suspect.at < lost.ended_at


def _fault(suspect: Suspect) -> Fault:
    lines = suspect.lines if any(line.text.strip() for line in suspect.lines) else suspect.launcher
    return Fault(
        replica=suspect.replica,
        rank=suspect.rank,
        code=suspect.code,
        signal=suspect.signal,
        exception=suspect.raised.text if suspect.raised else None,
        frame=suspect.raised.frame if suspect.raised else None,
        at=suspect.at,
        last_lines=_tail(lines),
    )


def _tail(lines: tuple[Line, ...]) -> tuple[str, ...]:
    return texts(line for line in lines if line.text.strip())[-LAST_LINES:]


def _cause(evidence: Evidence, scenes: tuple[Scene, ...], suspect: Suspect, fault: Fault) -> tuple[Cause, str]:
    place = next(s for s in scenes if s.seen.name == suspect.replica)
    sentence = _sentence(evidence, suspect, fault)
    if _by_kill(fault) and not any(line.text.strip() for line in place.lines):
        sentence += " (its log is empty: what a killed program had printed may still have been in its buffer)"
    if place.seen.oom_kills and _by_kill(fault):
        return Cause.OOM, f"{sentence}: the kernel killed it because the memory was used up"
    if evidence.port is not None and _met_nobody(suspect) and _port_taken(evidence.port, scenes):
        return Cause.PORT_TAKEN, sentence
    return Cause.USER, sentence


def _by_kill(fault: Fault) -> bool:
    worker = fault.exception is not None and "is killed by signal: Killed" in fault.exception
    return fault.signal == _KILL or fault.code == 128 + _KILL or worker


def _met_nobody(suspect: Suspect) -> bool:
    """What it ended by may follow from a port that was taken."""
    return suspect.blame is not Blame.OWN or (suspect.raised is not None and "in use" in suspect.raised.text)


def _port_taken(port: int, scenes: tuple[Scene, ...]) -> bool:
    """Launchers and rank 0 listen on the port; what others print of it is hearsay."""
    said = (line for one in scenes for line in one.lines if line.rank is None or line.rank == 0)
    return any("server socket" in line.text and port_in(line.text) == port for line in said)


def _sentence(evidence: Evidence, suspect: Suspect, fault: Fault) -> str:
    who = _who(evidence, suspect)
    if fault.exception is not None:
        where = f" ({fault.frame})" if fault.frame else ""
        how = f"failed with {_brief(fault.exception)}{where}"
    elif fault.signal is not None:
        how = f"was {fault.exit}"
    elif fault.code is not None and fault.code > 128:
        how = f"ended with exit {fault.code}, so a program in it was {replace(fault, signal=fault.code - 128).exit}"
    else:
        how = f"ended with {fault.exit}" if fault.code is not None else fault.exit
    return f"{who} {how}"


def _brief(error: str) -> str:
    """Short enough for a sentence; the fault keeps more of it."""
    return error if len(error) <= MAX_ERROR else error[: MAX_ERROR - 3].rstrip() + "..."


def _who(evidence: Evidence, suspect: Suspect) -> str:
    if suspect.rank is not None:
        return f"rank {suspect.rank} ({suspect.replica})"
    if suspect.command is not None:
        return f"`{suspect.command}` of {suspect.replica}"
    command = evidence.commands.get(suspect.replica)
    return f"`{command}` of {suspect.replica}" if command else f"the command of {suspect.replica}"
