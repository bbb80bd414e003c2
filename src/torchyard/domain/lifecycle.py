"""The state machine: the only code that changes a phase. A pure function of what is remembered and what was seen.

Effects follow from the state alone, never from the step that led to it: whoever takes over after a crash decides again
and gets the same effects.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from torchyard.domain.cause import Cause, Diagnosis
from torchyard.domain.decision import (
    Asked,
    Decision,
    Deliver,
    Delivered,
    Effect,
    Granted,
    Hindered,
    Observed,
    Prepare,
    Prepared,
    Queued,
    Refused,
    Remove,
    Removed,
    Seen,
    Start,
    Started,
    Stepped,
    Stop,
    Tick,
)
from torchyard.domain.draft import Draft
from torchyard.domain.observation import Observation
from torchyard.domain.quantities import parse_duration, show_duration
from torchyard.domain.retry import fail_or_retry
from torchyard.domain.workload import (
    Attempt,
    Desired,
    Ending,
    EndingBecause,
    Phase,
    Workload,
)

FAULT_GRACE = 1.0
"""Seconds that the other replicas get when one has failed."""
BUSY_PAUSE = 2.0
"""Seconds before a launch is tried again that found its devices taken: the cluster was believed free."""


def decide(workload: Workload, seen: Seen, now: datetime) -> Decision:
    """What becomes of the workload, now that this was seen. Never raises; what does not fit changes nothing."""
    draft = Draft(workload, now)
    match seen:
        case Asked():
            _asked(draft, seen)
        case Granted():
            _granted(draft, seen)
        case Queued():
            _queued(draft, seen)
        case Prepared():
            _prepared(draft, seen)
        case Started():
            _started(draft, seen)
        case Refused():
            _refused(draft, seen)
        case Hindered():
            _hindered(draft, seen)
        case Observed():
            _observed(draft, seen)
        case Stepped():
            _stepped(draft, seen)
        case Delivered():
            _delivered(draft, seen)
        case Removed():
            if draft.w.desired is Desired.DELETED and not draft.w.active and draft.w.deleted_at is None:
                draft.w = replace(draft.w, deleted_at=now)
                draft.note("Deleted", "deleted, logs and code copies included")
        case Tick():
            pass
        case _:
            assert_never(seen)
    _deadlines(draft)
    return Decision(
        workload=draft.w,
        events=tuple(draft.events),
        effects=due(draft.w),
        wake_at=_wake_at(draft.w, now),
    )


def due(workload: Workload) -> tuple[Effect, ...]:
    """What is to be done for a workload in this state."""
    effects: list[Effect] = []
    attempt = workload.attempt
    if attempt is not None and not attempt.over:
        if attempt.ending is not None and attempt.handle is not None:
            effects.append(Stop(handle=attempt.handle, grace=attempt.ending.grace, sentence=attempt.ending.sentence))
        elif attempt.handle is None:
            effects.append(Prepare())
        elif not attempt.started:
            effects.append(Start(handle=attempt.handle))
    elif workload.desired is Desired.DELETED and workload.deleted_at is None:
        effects.append(Remove())
    effects.extend(Deliver(notice=notice) for notice in workload.notices)
    return tuple(effects)


def _asked(draft: Draft, seen: Asked) -> None:
    match seen.desired:
        case Desired.RUNNING:
            _resume(draft, seen)
        case Desired.STOPPED:
            if draft.w.desired is not Desired.DELETED and not draft.w.phase.terminal:
                draft.w = replace(draft.w, desired=Desired.STOPPED)
                _end_or_leave(draft, seen, f"stopped by {seen.by}", Phase.STOPPING, Phase.STOPPED)
        case Desired.DELETED:
            if draft.w.desired is not Desired.DELETED:
                draft.w = replace(draft.w, desired=Desired.DELETED)
                _end_or_leave(draft, seen, f"deleted by {seen.by}", Phase.DELETING, Phase.DELETING)
        case _:
            assert_never(seen.desired)


def _resume(draft: Draft, seen: Asked) -> None:
    if not draft.w.phase.terminal or draft.w.desired is Desired.DELETED or draft.w.active:
        return
    draft.w = replace(
        draft.w,
        desired=Desired.RUNNING,
        user_faults=0,
        infra_losses=0,
        equal_faults=0,
        last_fault=None,
        not_before=None,
        completed_at=None,
        run_seconds=0.0,
    )
    draft.enter(Phase.RESUMING, f"resumed by {seen.by}")


def _end_or_leave(draft: Draft, seen: Asked, sentence: str, ending: Phase, ended: Phase) -> None:
    """Ask a running attempt to end, or end at once what holds nothing yet."""
    attempt = draft.w.attempt
    if attempt is None or attempt.over:
        draft.settle(ended, sentence)
    elif attempt.handle is None:
        draft.set_attempt(replace(attempt, ended_at=draft.now, withdrawn=True))
        draft.settle(ended, sentence)
    else:
        grace = draft.w.submission.grace if seen.grace is None else seen.grace
        _ask_to_end(draft, EndingBecause.STOP, grace, sentence)
        draft.enter(ending, sentence)


def _ask_to_end(draft: Draft, because: EndingBecause, grace: float, sentence: str) -> None:
    attempt = draft.w.attempt
    if attempt is None or attempt.over:
        return
    old = attempt.ending
    if old is None:
        ending = Ending(because=because, at=draft.now, grace=grace, sentence=sentence)
    elif because is EndingBecause.STOP and old.because is not EndingBecause.STOP:
        ending = Ending(because=because, at=old.at, grace=min(grace, old.grace), sentence=sentence)
    else:
        ending = replace(old, grace=min(grace, old.grace))
    draft.set_attempt(replace(attempt, ending=ending))


def _granted(draft: Draft, seen: Granted) -> None:
    w = draft.w
    if not w.waiting:
        return
    number = w.attempts + 1
    reason = "submitted" if w.attempt is None else w.reason
    attempt = Attempt(number=number, reason=reason, created_at=draft.now, devices=w.submission.devices)
    draft.w = replace(w, attempt=attempt, attempts=number, not_before=None)
    draft.enter(Phase.INITIALIZING, f"attempt {number} is starting: {seen.sentence}")
    if number == 1:
        for note in seen.notes:
            draft.note("Launch", note)


def _queued(draft: Draft, seen: Queued) -> None:
    if not draft.w.waiting:
        return
    if draft.w.not_before is not None and draft.w.not_before > draft.now:
        return
    first = draft.w.phase is not Phase.PENDING
    draft.enter(Phase.PENDING, seen.sentence)
    if first:
        draft.tell("waiting", f"{draft.w.name} waits: {seen.sentence}")


def _prepared(draft: Draft, seen: Prepared) -> None:
    attempt = draft.w.attempt
    if attempt is not None and not attempt.over and attempt.handle is None:
        draft.set_attempt(replace(attempt, handle=seen.handle))


def _started(draft: Draft, seen: Started) -> None:
    attempt = draft.w.attempt
    if attempt is not None and not attempt.over and attempt.handle == seen.handle and not attempt.started:
        draft.set_attempt(replace(attempt, started=True))
        draft.w = replace(draft.w, last_launch_at=draft.now)


def _refused(draft: Draft, seen: Refused) -> None:
    attempt = draft.w.attempt
    if attempt is None or attempt.over or attempt.ending is not None:
        return
    if seen.busy:
        draft.note("Withdrawn", f"attempt {attempt.number} was taken back: {seen.sentence}", warning=True)
        because = EndingBecause.WITHDRAWN
    else:
        diagnosis = Diagnosis(cause=Cause.START, sentence=seen.sentence)
        attempt = replace(attempt, diagnosis=diagnosis)
        because = EndingBecause.FAULT
    draft.set_attempt(attempt)
    if attempt.handle is None:
        _finish(draft, attempt, attempt.diagnosis, withdrawn=seen.busy, checkpointed=False)
    else:
        _ask_to_end(draft, because, 0.0, seen.sentence)


def _hindered(draft: Draft, seen: Hindered) -> None:
    attempt = draft.w.attempt
    if attempt is not None and not attempt.over and attempt.ending is None and not attempt.started:
        draft.enter(draft.w.phase, f"attempt {attempt.number} cannot start yet: {seen.sentence}")


def _observed(draft: Draft, seen: Observed) -> None:
    attempt = draft.w.attempt
    if attempt is None or attempt.over or attempt.handle is None:
        return
    before = {replica.name: replica for replica in attempt.replicas}
    draft.set_attempt(replace(attempt, replicas=seen.observation.replicas or attempt.replicas))
    for replica in seen.observation.replicas:
        old = before.get(replica.name)
        if replica.left_behind and (old is None or not old.left_behind):
            names = ", ".join(replica.left_behind)
            draft.note("LeftBehind", f"ended what the command had left running: {names}", replica=replica.name)
        if replica.lost_log_lines and (old is None or not old.lost_log_lines):
            what = "1 log line was" if replica.lost_log_lines == 1 else f"{replica.lost_log_lines} log lines were"
            lost = f"{what} lost because the disk was full"
            draft.note("LogLost", lost, warning=True, replica=replica.name)
    attempt = draft.w.attempt
    assert attempt is not None
    if seen.observation.over and seen.diagnosis is not None:
        withdrawn = attempt.ending is not None and attempt.ending.because is EndingBecause.WITHDRAWN
        diagnosis = attempt.diagnosis or seen.diagnosis
        _finish(draft, attempt, diagnosis, withdrawn=withdrawn, checkpointed=seen.checkpointed)
    elif attempt.ending is None:
        _follow(draft, attempt, seen.observation)


def _follow(draft: Draft, attempt: Attempt, observation: Observation) -> None:
    """An attempt that is under way."""
    if observation.failed:
        first = observation.failed[0]
        how = f"exit {first.code}" if first.code is not None else f"signal {first.signal}" if first.signal else "lost"
        sentence = f"{first.name} failed ({how}); the other replicas are being stopped"
        _ask_to_end(draft, EndingBecause.FAULT, FAULT_GRACE, sentence)
        draft.note("ReplicaFailed", sentence, warning=True, replica=first.name)
        draft.enter(draft.w.phase, sentence)
    elif observation.running and attempt.running_at is None:
        draft.set_attempt(replace(attempt, running_at=draft.now, started=True))
        draft.enter(Phase.RUNNING, f"attempt {attempt.number} runs")


def _finish(
    draft: Draft, attempt: Attempt, diagnosis: Diagnosis | None, *, withdrawn: bool, checkpointed: bool
) -> None:
    """An attempt is over: decide what becomes of the workload."""
    ended = max((r.ended_at for r in attempt.replicas if r.ended_at), default=draft.now)
    ran = max(0.0, (ended - attempt.running_at).total_seconds()) if attempt.running_at else 0.0
    attempt = replace(attempt, ended_at=ended, diagnosis=diagnosis, withdrawn=withdrawn)
    draft.set_attempt(attempt)
    draft.w = replace(draft.w, run_seconds=draft.w.run_seconds + ran)
    if draft.w.desired is Desired.DELETED:
        draft.enter(Phase.DELETING, draft.w.reason)
        return
    if diagnosis is not None and diagnosis.cause is None and not withdrawn:
        draft.settle(Phase.COMPLETED, diagnosis.sentence)
        if diagnosis.suspicious:
            draft.note("SuspiciousSuccess", diagnosis.suspicious, warning=True)
    elif draft.w.desired is Desired.STOPPED:
        draft.settle(Phase.STOPPED, attempt.ending.sentence if attempt.ending else draft.w.reason)
    elif withdrawn or diagnosis is None:
        draft.w = replace(draft.w, not_before=draft.now + timedelta(seconds=BUSY_PAUSE))
        draft.enter(Phase.PENDING, attempt.ending.sentence if attempt.ending else "waiting for another launch")
    else:
        fail_or_retry(draft, attempt, diagnosis, ran, checkpointed)


def _stepped(draft: Draft, seen: Stepped) -> None:
    attempt = draft.w.attempt
    step = seen.progress.step
    if attempt is None or attempt.number != seen.attempt or attempt.start_step is not None or step is None:
        return
    draft.set_attempt(replace(attempt, start_step=step))
    if attempt.number > 1 and draft.w.best_step is not None and draft.w.best_step > 1 >= step:
        message = (
            f"attempt {attempt.number} starts again at {seen.progress.unit} {step}, though {draft.w.best_step} was "
            "reached before: the script does not resume from a checkpoint"
        )
        draft.note("DidNotResume", message, warning=True)


def _delivered(draft: Draft, seen: Delivered) -> None:
    left = tuple(notice for notice in draft.w.notices if notice != seen.notice)
    draft.w = replace(draft.w, notices=left)
    if seen.problem:
        draft.note("NotifyFailed", seen.problem, warning=True)


def _deadlines(draft: Draft) -> None:
    attempt = draft.w.attempt
    if attempt is None or attempt.over or attempt.ending is not None:
        return
    attempt = _not_later(attempt, draft.now)
    draft.set_attempt(attempt)
    at, because, sentence = _deadline(draft.w, attempt)
    if at is None or at > draft.now:
        return
    if attempt.handle is None:
        diagnosis = Diagnosis(cause=Cause.START, sentence=_with_reason(sentence, draft.w))
        _finish(draft, attempt, diagnosis, withdrawn=False, checkpointed=False)
    else:
        grace = draft.w.submission.grace if because is EndingBecause.DEADLINE else 0.0
        sentence = _with_reason(sentence, draft.w) if attempt.running_at is None else sentence
        _ask_to_end(draft, because, grace, sentence)
        draft.enter(draft.w.phase, sentence)


def _with_reason(sentence: str, w: Workload) -> str:
    """Whoever waited in vain wants to know what for."""
    return f"{sentence}; {w.reason}" if w.reason else sentence


def _not_later(attempt: Attempt, now: datetime) -> Attempt:
    """Nothing begins later than now, unless the clock was set back: then its time counts from now on."""
    running_at = attempt.running_at
    if attempt.created_at <= now and (running_at is None or running_at <= now):
        return attempt
    return replace(attempt, created_at=min(attempt.created_at, now), running_at=running_at and min(running_at, now))


def _deadline(w: Workload, attempt: Attempt) -> tuple[datetime | None, EndingBecause, str]:
    """The next moment at which this attempt is ended for taking too long."""
    extras = w.submission.torchyard
    if attempt.running_at is None:
        limit = parse_duration(extras.pending_deadline)
        sentence = f"it did not start within {show_duration(limit)} (pendingDeadline)"
        return attempt.created_at + timedelta(seconds=limit), EndingBecause.PENDING_DEADLINE, sentence
    if extras.max_time is None:
        return None, EndingBecause.DEADLINE, ""
    limit = parse_duration(extras.max_time)
    sentence = f"the maximum run time of {show_duration(limit)} is over (maxTime)"
    left = max(0.0, limit - w.run_seconds)
    return attempt.running_at + timedelta(seconds=left), EndingBecause.DEADLINE, sentence


def _wake_at(w: Workload, now: datetime) -> datetime | None:
    if w.waiting:
        return w.not_before
    attempt = w.attempt
    if attempt is None or attempt.over or attempt.ending is not None:
        return None
    return _deadline(w, attempt)[0]
