"""The state machine, by tables and by properties."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchyard.domain.cause import Cause, Diagnosis, Fault
from torchyard.domain.decision import (
    Asked,
    Deliver,
    Delivered,
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
from torchyard.domain.launch import Handle
from torchyard.domain.lifecycle import BUSY_PAUSE, FAULT_GRACE, decide
from torchyard.domain.observation import Observation, ReplicaSeen, ReplicaState
from torchyard.domain.spec import Submission
from torchyard.domain.workload import Desired, EndingBecause, Phase, Progress, Workload

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def make(backoff: int = 6, workers: int = 1, **extras: object) -> Workload:
    submission = Submission.model_validate(
        {
            "kind": "distributed",
            "name": "ddp",
            "spec": {"command": "bash run.sh", "numWorkers": workers, "backoffLimit": backoff},
            "torchyard": extras,
        }
    )
    return Workload(
        id="w",
        name="ddp",
        kind=submission.kind,
        project="default",
        cluster="local",
        submission=submission,
        created_at=T0,
        created_by="ann",
        phase=Phase.CREATING,
        phase_at=T0,
    )


def handle(w: Workload) -> Handle:
    assert w.attempt is not None
    return Handle(cluster="local", key=f"{w.id}-{w.attempt.number}", ref="x")


def replica(name: str, state: ReplicaState, code: int | None = None) -> ReplicaSeen:
    return ReplicaSeen(name=name, state=state, code=code)


def seen(*replicas: ReplicaSeen, diagnosis: Diagnosis | None = None, checkpointed: bool = False) -> Observed:
    return Observed(observation=Observation(at=T0, replicas=replicas), diagnosis=diagnosis, checkpointed=checkpointed)


def running() -> Observed:
    return seen(replica("master-0", ReplicaState.RUNNING), replica("worker-0", ReplicaState.RUNNING))


def ended(
    cause: Cause | None, exception: str = "ValueError: boom", step: int | None = None, checkpointed: bool = False
) -> Observed:
    code = 0 if cause is None else 1
    fault = None if cause is None else Fault(replica="master-0", rank=0, code=1, exception=exception)
    return seen(
        replica("master-0", ReplicaState.ENDED, code=code),
        replica("worker-0", ReplicaState.ENDED, code=code),
        diagnosis=Diagnosis(cause=cause, sentence="it ended", fault=fault, step=step),
        checkpointed=checkpointed,
    )


def launch(w: Workload, now: float = 0) -> Workload:
    """Granted, both steps, running."""
    w = decide(w, Granted(sentence="2 ranks"), at(now)).workload
    w = decide(w, Prepared(handle=handle(w)), at(now)).workload
    w = decide(w, Started(handle=handle(w)), at(now)).workload
    return decide(w, running(), at(now)).workload


def test_launch_has_two_steps() -> None:
    granted = decide(make(), Granted(sentence="2 ranks"), T0)
    assert granted.effects == (Prepare(),)
    committed = decide(granted.workload, Prepared(handle=handle(granted.workload)), T0)
    assert committed.effects == (Start(handle=handle(granted.workload)),)
    started = decide(committed.workload, Started(handle=handle(granted.workload)), T0)
    assert started.effects == ()
    assert decide(started.workload, running(), T0).workload.phase is Phase.RUNNING


def test_a_replica_that_hangs_before_it_runs_is_not_running() -> None:
    w = decide(make(), Granted(sentence=""), T0).workload
    w = decide(w, Prepared(handle=handle(w)), T0).workload
    one_hangs = seen(replica("master-0", ReplicaState.RUNNING), replica("worker-0", ReplicaState.STARTING))
    late = decide(w, one_hangs, at(899))
    assert late.workload.phase is Phase.INITIALIZING
    too_late = decide(w, one_hangs, at(901))
    assert too_late.effects == (Stop(handle=handle(w), grace=0.0, sentence=too_late.workload.reason),)
    over = decide(too_late.workload, ended(Cause.STOPPED), at(902)).workload
    assert over.phase is Phase.FAILED
    assert over.attempt and over.attempt.diagnosis and over.attempt.diagnosis.cause is Cause.START


@pytest.mark.parametrize(("lost", "what"), [(1, "1 log line was lost"), (2, "2 log lines were lost")])
def test_lines_that_a_full_disk_took_are_said(lost: int, what: str) -> None:
    master = replace(replica("master-0", ReplicaState.RUNNING), lost_log_lines=lost)
    said = decide(launch(make()), seen(master, replica("worker-0", ReplicaState.RUNNING)), at(5)).events
    assert [event.message for event in said] == [f"{what} because the disk was full"]


def test_the_others_get_one_second_when_one_fails() -> None:
    w = launch(make())
    failed = decide(
        w, seen(replica("master-0", ReplicaState.RUNNING), replica("worker-0", ReplicaState.ENDED, code=1)), at(5)
    )
    (effect,) = failed.effects
    assert isinstance(effect, Stop) and effect.grace == FAULT_GRACE
    assert "worker-0 failed (exit 1)" in failed.workload.reason


def test_exit_1_at_once_with_backoff_limit_2_makes_three_attempts() -> None:
    w = make(backoff=2)
    for number, step in ((1, 1), (2, 2), (3, 3)):
        w = launch(w)
        assert w.attempts == number
        w = decide(w, ended(Cause.USER, exception=f"E{step}"), at(number)).workload
    assert w.phase is Phase.FAILED
    assert "backoffLimit 2" in w.reason


def test_three_equal_faults_end_early() -> None:
    w = make(backoff=10)
    for _ in range(3):
        w = decide(launch(w), ended(Cause.USER), at(1)).workload
    assert (w.phase, w.attempts) == (Phase.FAILED, 3)
    assert "3 times in a row" in w.reason


@pytest.mark.parametrize("progress", [{"step": 1}, {"checkpointed": True}])
def test_equal_faults_with_progress_do_not_end_it(progress: dict[str, int]) -> None:
    w = make(backoff=10)
    for number in range(1, 6):
        step = number * progress["step"] if "step" in progress else None
        end = ended(Cause.USER, step=step, checkpointed="checkpointed" in progress)
        w = decide(launch(w), end, at(number)).workload
    assert (w.phase, w.attempts, w.user_faults) == (Phase.RESUMING, 5, 5)


def test_infrastructure_has_a_budget_of_its_own() -> None:
    w = make(backoff=0)
    for _ in range(20):
        w = decide(launch(w), ended(Cause.SUPERVISOR_LOST), at(1)).workload
        assert w.phase is Phase.RESUMING
    assert decide(launch(w), ended(Cause.SUPERVISOR_LOST), at(1)).workload.phase is Phase.FAILED


def test_a_start_failure_is_not_retried() -> None:
    w = decide(make(), Granted(sentence=""), T0).workload
    w = decide(w, Refused(sentence="no such folder", busy=False), at(1)).workload
    assert (w.phase, w.reason) == (Phase.FAILED, "no such folder")


def test_an_engine_that_is_away_is_said_and_waited_for_until_the_deadline() -> None:
    w = decide(make(), Granted(sentence=""), T0).workload
    hindered = decide(w, Hindered(sentence="the disk is full"), at(1))
    assert hindered.effects == (Prepare(),)
    assert hindered.workload.reason == "attempt 1 cannot start yet: the disk is full"
    late = decide(hindered.workload, Hindered(sentence="the disk is full"), at(901))
    assert (late.workload.phase, late.effects) == (Phase.FAILED, ())
    assert "(pendingDeadline)" in late.workload.reason and "the disk is full" in late.workload.reason


def test_what_runs_is_not_hindered() -> None:
    w = launch(make())
    assert decide(w, Hindered(sentence="late news"), at(1)).workload == w


def test_busy_devices_cost_nothing_and_the_attempt_never_runs() -> None:
    w = decide(make(backoff=0), Granted(sentence=""), T0).workload
    w = decide(w, Prepared(handle=handle(w)), T0).workload
    refused = decide(w, Refused(sentence="devices are taken", busy=True), T0)
    assert [type(e) for e in refused.effects] == [Stop]
    w = decide(refused.workload, ended(Cause.STOPPED), T0).workload
    assert (w.phase, w.user_faults, w.waiting) == (Phase.PENDING, 0, True)
    assert w.not_before == at(BUSY_PAUSE)


def test_stop_and_resume() -> None:
    w = launch(make())
    stopping = decide(w, Asked(desired=Desired.STOPPED, by="ann"), at(1))
    assert stopping.workload.phase is Phase.STOPPING
    assert [type(e) for e in stopping.effects] == [Stop]
    stopped = decide(stopping.workload, ended(Cause.STOPPED), at(2)).workload
    assert (stopped.phase, stopped.reason) == (Phase.STOPPED, "stopped by ann")
    resumed = decide(stopped, Asked(desired=Desired.RUNNING, by="ann"), at(3)).workload
    assert resumed.waiting and resumed.phase is Phase.RESUMING
    assert launch(resumed).attempts == 2


def test_a_shorter_stop_shortens_the_grace() -> None:
    w = decide(launch(make()), Asked(desired=Desired.STOPPED, by="ann"), at(1)).workload
    again = decide(w, Asked(desired=Desired.STOPPED, by="ann", grace=2.0), at(2))
    (effect,) = again.effects
    assert isinstance(effect, Stop) and effect.grace == 2.0
    longer = decide(again.workload, Asked(desired=Desired.STOPPED, by="ann", grace=99.0), at(2))
    (effect,) = longer.effects
    assert isinstance(effect, Stop) and effect.grace == 2.0


def test_stop_before_anything_was_committed_starts_nothing() -> None:
    w = decide(make(), Granted(sentence=""), T0).workload
    stopped = decide(w, Asked(desired=Desired.STOPPED, by="ann"), at(1))
    assert (stopped.workload.phase, stopped.effects) == (Phase.STOPPED, ())


def test_completed_although_a_stop_was_asked_too_late() -> None:
    w = decide(launch(make()), Asked(desired=Desired.STOPPED, by="ann"), at(1)).workload
    assert decide(w, ended(None), at(2)).workload.phase is Phase.COMPLETED


def test_max_time_ends_it() -> None:
    w = launch(make(maxTime="10m"))
    assert decide(w, running(), at(599)).effects == ()
    assert decide(w, running(), at(599)).wake_at == at(600)
    over = decide(w, running(), at(600)).workload
    assert over.attempt and over.attempt.ending and over.attempt.ending.because is EndingBecause.DEADLINE
    end = decide(over, ended(Cause.STOPPED), at(601)).workload
    assert end.phase is Phase.FAILED and "maximum run time of 10m" in end.reason


def test_max_time_counts_anew_when_a_user_resumes() -> None:
    w = decide(launch(make(maxTime="1h")), Tick(), at(3600)).workload
    w = decide(w, ended(Cause.STOPPED), at(3601)).workload
    assert w.phase is Phase.FAILED
    w = launch(decide(w, Asked(desired=Desired.RUNNING, by="ann"), at(4000)).workload, now=4000)
    assert decide(w, Tick(), at(4000 + 3599)).effects == ()
    assert [type(e) for e in decide(w, Tick(), at(4000 + 3600)).effects] == [Stop]


def test_notices_stay_until_they_are_delivered() -> None:
    w = make(backoff=0, notify={"command": "true"})
    w = decide(w, Queued(sentence="needs 4 devices"), T0).workload
    (waiting,) = w.notices
    assert waiting.kind == "waiting"
    w = decide(launch(w), ended(Cause.USER), at(1)).workload
    assert [n.kind for n in w.notices] == ["waiting", "failed"]
    assert not w.settled
    decision = decide(w, Delivered(notice=waiting), at(2))
    assert [e.notice.kind for e in decision.effects if isinstance(e, Deliver)] == ["failed"]


def test_a_retry_that_does_not_resume_is_said() -> None:
    w = decide(launch(make()), ended(Cause.USER, step=50), at(1)).workload
    w = launch(w)
    decision = decide(w, Stepped(attempt=2, progress=Progress(step=0, unit="epoch")), at(2))
    assert [e.reason for e in decision.events] == ["DidNotResume"]
    assert "starts again at epoch 0" in decision.events[0].message
    resumed = decide(w, Stepped(attempt=2, progress=Progress(step=26, unit="epoch")), at(2))
    assert resumed.events == ()


def test_delete_ends_removes_and_is_remembered() -> None:
    w = decide(launch(make()), Asked(desired=Desired.DELETED, by="ann"), at(1)).workload
    gone = decide(w, ended(Cause.STOPPED), at(2))
    assert (gone.workload.phase, gone.effects) == (Phase.DELETING, (Remove(),))
    assert decide(gone.workload, Removed(), at(3)).workload.deleted_at == at(3)


_REPLICA = st.builds(
    ReplicaSeen,
    name=st.sampled_from(["master-0", "worker-0"]),
    state=st.sampled_from(list(ReplicaState)),
    code=st.sampled_from([None, 0, 1, 137]),
)
_DIAGNOSIS = st.builds(
    Diagnosis,
    cause=st.none() | st.sampled_from(list(Cause)),
    sentence=st.just("it ended"),
    step=st.none() | st.integers(0, 9),
)
_SEEN: st.SearchStrategy[Seen] = st.one_of(
    st.builds(Asked, desired=st.sampled_from(list(Desired)), by=st.just("ann"), grace=st.none() | st.floats(0, 60)),
    st.builds(Granted, sentence=st.just("2 ranks")),
    st.builds(Queued, sentence=st.sampled_from(["a", "b"])),
    st.builds(Refused, sentence=st.just("no"), busy=st.booleans()),
    st.builds(
        Observed,
        observation=st.builds(Observation, at=st.just(T0), replicas=st.lists(_REPLICA, max_size=2).map(tuple)),
        diagnosis=st.none() | _DIAGNOSIS,
        checkpointed=st.booleans(),
    ),
    st.builds(Stepped, attempt=st.integers(1, 3), progress=st.builds(Progress, step=st.integers(0, 9))),
    st.just(Removed()),
    st.just(Tick()),
)
_PREPARED, _STARTED = "prepared", "started"
_STEPS = st.lists(st.one_of(_SEEN, st.sampled_from([_PREPARED, _STARTED])), max_size=40)


@settings(max_examples=300)
@given(steps=_STEPS, backoff=st.integers(0, 3))
def test_whatever_is_seen_the_promises_hold(steps: list[Seen | str], backoff: int) -> None:
    w = make(backoff=backoff, maxTime="1h", notify={"command": "true"})
    for number, name_or_seen in enumerate(steps):
        before = w
        step = name_or_seen
        if isinstance(step, str):
            if w.attempt is None:
                continue
            step = Prepared(handle=handle(w)) if step == _PREPARED else Started(handle=handle(w))
        decision = decide(w, step, at(number))
        w = decision.workload
        asked_again = isinstance(step, Asked) and step.desired is Desired.RUNNING
        if before.phase.terminal and not asked_again:
            assert w.phase is before.phase or w.desired is Desired.DELETED, "terminal is terminal"
            assert w.attempts == before.attempts
        if before.attempt and before.attempt.over and w.attempt and w.attempt.number == before.attempt.number:
            assert replace(w.attempt, start_step=None) == replace(before.attempt, start_step=None)
        for effect in decision.effects:
            match effect:
                case Start():
                    assert w.attempt and w.attempt.handle == effect.handle, "only what is committed may run"
                    assert w.attempt.ending is None and not w.attempt.over
                case Stop():
                    assert w.attempt and w.attempt.ending and not w.attempt.over
                case Prepare():
                    assert w.attempt and w.attempt.handle is None and not w.attempt.over
                case Remove():
                    assert w.desired is Desired.DELETED and not w.active
                case Deliver():
                    assert effect.notice in w.notices
        assert w.user_faults <= backoff + 1
        assert decide(w, Tick(), at(number)).effects == decision.effects, "effects follow from the state alone"
