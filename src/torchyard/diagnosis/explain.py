"""Why is it not making progress? One verdict on a workload as it is remembered. Asks nobody and changes nothing."""

from datetime import datetime
from typing import assert_never

from torchyard.domain.cause import INFRA_BUDGET, Budget, Cause, Diagnosis, Fault, budget_of
from torchyard.domain.observation import ReplicaState
from torchyard.domain.quantities import show_duration
from torchyard.domain.verdict import Verdict
from torchyard.domain.workload import Attempt, Phase, Progress, Workload

MAX_PAST = 5
"""So many attempts before the last one are told of."""


def explain(
    workload: Workload,
    *,
    attempts: tuple[Attempt, ...],
    progress: Progress | None,
    newest_checkpoint: tuple[str, datetime] | None,
    now: datetime,
) -> Verdict:
    """The verdict. `attempts` are all that are remembered, in order; `newest_checkpoint` is whole."""
    ended = _last_ended(workload, attempts)
    diagnosis = ended.diagnosis if ended else None
    failed = diagnosis is not None and diagnosis.cause is not None
    tell = diagnosis if failed and _tells(workload.phase) else None
    return Verdict(
        phase=workload.phase.value,
        sentence=_sentence(workload, progress, now),
        cause=tell.cause if tell else None,
        fault=tell.fault if tell else None,
        evidence=(
            *_of_fault(tell),
            *_of_attempts(workload, attempts, ended if tell else None),
            *_of_progress(progress),
            *_of_checkpoint(newest_checkpoint, now),
        ),
        next_step=_next_step(workload, diagnosis, newest_checkpoint, now),
    )


def _tells(phase: Phase) -> bool:
    """Phases in which the end of the last attempt is the story."""
    return phase not in (Phase.COMPLETED, Phase.STOPPED, Phase.STOPPING, Phase.DELETING, Phase.TERMINATING)


def _last_ended(workload: Workload, attempts: tuple[Attempt, ...]) -> Attempt | None:
    known = {attempt.number: attempt for attempt in attempts}
    if workload.attempt is not None:
        known[workload.attempt.number] = workload.attempt
    ended = [a for _, a in sorted(known.items()) if a.over and not a.withdrawn]
    return ended[-1] if ended else None


def _sentence(workload: Workload, progress: Progress | None, now: datetime) -> str:
    name, reason = workload.name, workload.reason
    match workload.phase:
        case Phase.RUNNING | Phase.DEGRADED | Phase.UPDATING:
            return f"{name} has been running{_since(workload, now)}{_far_now(workload, progress)}"
        case Phase.COMPLETED:
            return f"{name} completed: {reason}" if reason else f"{name} completed"
        case Phase.FAILED:
            return f"{name} failed: {reason}"
        case Phase.STOPPED | Phase.STOPPING:
            was = "was" if workload.phase.terminal else "is being"
            return f"{name} {was} {reason if reason.startswith('stopped') else f'stopped: {reason}'}"
        case Phase.PENDING:
            return f"{name} waits: {reason}" if reason else f"{name} waits for its turn"
        case Phase.CREATING | Phase.INITIALIZING:
            return _starting(workload, now)
        case Phase.RESUMING:
            return f"{name} starts again: {reason}"
        case Phase.DELETING | Phase.TERMINATING:
            return f"{name} is being deleted: {reason}"
        case Phase.UNKNOWN:
            return f"nothing is known of {name} for now: {reason}"
        case _:
            assert_never(workload.phase)


def _since(workload: Workload, now: datetime) -> str:
    attempt = workload.attempt
    if attempt is None or attempt.running_at is None:
        return ""
    since = show_duration(max(0.0, (now - attempt.running_at).total_seconds()))
    return f" for {since} (attempt {attempt.number})"


def _far_now(workload: Workload, progress: Progress | None) -> str:
    if progress is not None and progress.step is not None and progress.attempt not in (None, workload.attempts):
        return f"; attempt {progress.attempt} got to {progress.unit} {progress.step}"
    return _how_far(progress)


def _how_far(progress: Progress | None) -> str:
    if progress is None or progress.step is None:
        return ""
    of = f" of {progress.total}" if progress.total is not None else ""
    left = f", about {show_duration(progress.eta)} left" if progress.eta else ""
    return f": {progress.unit} {progress.step}{of}{left}"


def _starting(workload: Workload, now: datetime) -> str:
    attempt = workload.attempt
    if attempt is None:
        return f"{workload.name} is being created: {workload.reason}" if workload.reason else "it is being created"
    waiting = [r.name for r in attempt.replicas if r.state in (ReplicaState.PREPARED, ReplicaState.STARTING)]
    names = f"; not yet running: {', '.join(waiting)}" if waiting else ""
    since = show_duration(max(0.0, (now - attempt.created_at).total_seconds()))
    return f"{workload.name} has been starting for {since} (attempt {attempt.number}){names}"


def _of_fault(diagnosis: Diagnosis | None) -> tuple[str, ...]:
    if diagnosis is None:
        return ()
    facts = []
    fault = diagnosis.fault
    if fault is not None:
        facts.append(f"{_who(fault)} failed first{_when(fault)}: {_how(fault)}")
    if diagnosis.step is not None:
        facts.append(f"the log of that attempt goes as far as step {diagnosis.step}")
    if diagnosis.signature is not None:
        facts.append(f"known failure: {diagnosis.signature}")
    return tuple(facts)


def _who(fault: Fault) -> str:
    return f"rank {fault.rank} of {fault.replica}" if fault.rank is not None else f"the command of {fault.replica}"


def _when(fault: Fault) -> str:
    return f" at {fault.at:%Y-%m-%d %H:%M:%S} UTC" if fault.at is not None else ""


def _how(fault: Fault) -> str:
    parts = [fault.exception] if fault.exception else []
    parts += [f"at {fault.frame}"] if fault.frame else []
    return ", ".join([*parts, fault.exit])


def _of_attempts(workload: Workload, attempts: tuple[Attempt, ...], told: Attempt | None) -> tuple[str, ...]:
    past = [a for a in attempts if a.over and (told is None or a.number != told.number)]
    facts = []
    if workload.attempts > 1:
        limit = workload.submission.spec.backoff_limit
        facts.append(f"{workload.attempts} attempts, {workload.user_faults} of {limit + 1} that may fail have failed")
    for attempt in past[-MAX_PAST:]:
        if attempt.withdrawn:
            facts.append(f"attempt {attempt.number} was taken back before it ran")
        elif attempt.diagnosis is not None:
            cause = attempt.diagnosis.cause
            why = f"cause {cause}" if cause else "completed"
            facts.append(f"attempt {attempt.number} ended ({why}): {attempt.diagnosis.sentence}")
            if attempt.diagnosis.suspicious:
                facts.append(attempt.diagnosis.suspicious)
    return tuple(facts)


def _of_progress(progress: Progress | None) -> tuple[str, ...]:
    if progress is None:
        return ()
    loss = f", loss {progress.loss:g}" if progress.loss is not None else ""
    at = f" (at {progress.at:%Y-%m-%d %H:%M:%S} UTC)" if progress.at is not None else ""
    step = _how_far(progress).removeprefix(": ")
    return (f"last progress: {step or 'no step'}{loss}{at}",)


def _of_checkpoint(newest: tuple[str, datetime] | None, now: datetime) -> tuple[str, ...]:
    if newest is None:
        return ("no complete checkpoint of this workload was found",)
    path, at = newest
    age = show_duration(max(0.0, (now - at).total_seconds()))
    return (f"newest complete checkpoint: {path}, {age} old",)


def _next_step(
    workload: Workload, diagnosis: Diagnosis | None, newest: tuple[str, datetime] | None, now: datetime
) -> str:
    name = workload.name
    match workload.phase:
        case Phase.FAILED:
            return _after_failure(workload, diagnosis)
        case Phase.STOPPED:
            return f"nothing by itself; `torchyard resume {name}` starts attempt {workload.attempts + 1}"
        case Phase.COMPLETED:
            suspicious = diagnosis is not None and diagnosis.suspicious
            return f"look at the end of `torchyard logs {name}`" if suspicious else "nothing, it is done"
        case Phase.PENDING | Phase.RESUMING:
            return _next_attempt(workload, now)
        case Phase.CREATING | Phase.INITIALIZING:
            return f"nothing to do; it fails if it does not run within {workload.submission.torchyard.pending_deadline}"
        case Phase.RUNNING | Phase.DEGRADED | Phase.UPDATING:
            return _while_running(workload, newest)
        case Phase.STOPPING | Phase.DELETING | Phase.TERMINATING:
            return _while_ending(workload)
        case Phase.UNKNOWN:
            return "nothing to do for the workload itself: it is looked at again and again until that is possible"
        case _:
            assert_never(workload.phase)


def _after_failure(workload: Workload, diagnosis: Diagnosis | None) -> str:
    again = f"`torchyard resume {workload.name}` tries again"
    hint = f"{diagnosis.hint}; then " if diagnosis is not None and diagnosis.hint else ""
    return f"nothing by itself: {_used_up(workload, diagnosis)}; {hint}{again}"


def _used_up(workload: Workload, diagnosis: Diagnosis | None) -> str:
    cause = diagnosis.cause if diagnosis is not None else None
    if cause is None:
        return "it has failed for good"
    match budget_of(cause):
        case Budget.USER:
            limit = workload.submission.spec.backoff_limit
            if workload.user_faults > limit:
                return f"all {limit + 1} attempts are used" if limit else "it had one attempt (backoffLimit 0)"
            return f"the same fault came {workload.equal_faults} times in a row with no progress between them"
        case Budget.INFRA:
            return f"{workload.infra_losses} attempts were lost to the machinery, {INFRA_BUDGET} are allowed"
        case Budget.NONE:
            return "a start that failed is not retried" if cause is Cause.START else "its time is over"
        case _:
            assert_never(budget_of(cause))


def _next_attempt(workload: Workload, now: datetime) -> str:
    number = workload.attempts + 1
    if workload.not_before is not None and workload.not_before > now:
        wait = show_duration((workload.not_before - now).total_seconds())
        return f"attempt {number} starts at {workload.not_before:%H:%M:%S} UTC, in {wait}"
    if workload.phase is Phase.RESUMING:
        return f"attempt {number} starts as soon as its devices are free"
    return f"nothing to do: attempt {number} starts when this is over: {workload.reason or 'its turn comes'}"


def _while_running(workload: Workload, newest: tuple[str, datetime] | None) -> str:
    ending = workload.attempt.ending if workload.attempt else None
    if ending is not None:
        return f"this attempt is being ended: {ending.sentence}"
    if newest is None:
        return "nothing to do; as long as it saves no checkpoint, a failure loses all of its work"
    return f"nothing to do; `torchyard logs {workload.name} -f` follows it"


def _while_ending(workload: Workload) -> str:
    attempt = workload.attempt
    if attempt is None or attempt.over or attempt.ending is None:
        return "nothing to do"
    return f"what still runs is killed {show_duration(attempt.ending.grace)} after it was asked to end"
