"""One verdict for every phase, from workloads that the lifecycle itself brought there."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.diagnosis.explain import explain
from torchyard.domain.cause import Cause, Diagnosis, Fault
from torchyard.domain.decision import Asked, Granted, Observed, Prepared, Queued, Seen, Started
from torchyard.domain.launch import Handle
from torchyard.domain.lifecycle import decide
from torchyard.domain.observation import Observation, ReplicaSeen, ReplicaState
from torchyard.domain.spec import Submission
from torchyard.domain.verdict import Verdict
from torchyard.domain.workload import Attempt, Desired, Phase, Progress, Workload

T0 = datetime(2026, 1, 1, tzinfo=UTC)
BOOM = Diagnosis(
    cause=Cause.USER,
    sentence="rank 1 (worker-0) failed with ValueError: boom (train.py:12 in step)",
    fault=Fault(replica="worker-0", rank=1, code=1, exception="ValueError: boom", frame="train.py:12 in step", at=T0),
    signature="diskFull",
    hint="make room",
    step=7,
)
DONE = Diagnosis(cause=None, sentence="all 2 replicas ended with exit 0")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def make(backoff: int = 2) -> Workload:
    spec = {"command": "bash run.sh", "numWorkers": 1, "backoffLimit": backoff}
    submission = Submission.model_validate({"kind": "distributed", "name": "ddp", "spec": spec})
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


class Story:
    """A workload and the attempts that it went through."""

    def __init__(self, backoff: int = 2) -> None:
        self.workload = make(backoff)
        self.attempts: dict[int, Attempt] = {}
        self.now = 0.0

    def see(self, *all_seen: Seen) -> "Story":
        for seen in all_seen:
            self.workload = decide(self.workload, seen, at(self.now)).workload
            if self.workload.attempt is not None:
                self.attempts[self.workload.attempt.number] = self.workload.attempt
        return self

    def launch(self) -> "Story":
        self.see(Granted(sentence="2 ranks"))
        handle = Handle(cluster="local", key=f"w-{self.workload.attempts}", ref="x")
        return self.see(Prepared(handle=handle), Started(handle=handle))

    def run(self) -> "Story":
        return self.launch().see(_observed(ReplicaState.RUNNING, None))

    def end(self, diagnosis: Diagnosis) -> "Story":
        code = 0 if diagnosis.cause is None else 1
        return self.see(_observed(ReplicaState.ENDED, code, diagnosis))

    def told(self, progress: Progress | None = None, newest: tuple[str, datetime] | None = None) -> Verdict:
        attempts = tuple(self.attempts.values())
        return explain(self.workload, attempts=attempts, progress=progress, newest_checkpoint=newest, now=at(self.now))


def _observed(state: ReplicaState, code: int | None, diagnosis: Diagnosis | None = None) -> Observed:
    replicas = tuple(ReplicaSeen(name=name, state=state, code=code) for name in ("master-0", "worker-0"))
    return Observed(observation=Observation(at=T0, replicas=replicas), diagnosis=diagnosis)


def test_failed_for_good() -> None:
    story = Story(backoff=2)
    for step in range(3):
        story.now += 10
        other = Diagnosis(cause=Cause.USER, sentence=BOOM.sentence, fault=BOOM.fault, hint=BOOM.hint, step=7 + step)
        story.run().end(other)
    told = story.told(Progress(step=9, total=20, loss=0.5, at=at(3)), ("snapshot.pt", at(20)))
    assert told.phase == "Failed" and told.cause is Cause.USER and told.fault == BOOM.fault
    assert told.sentence == f"ddp failed: {BOOM.sentence} (backoffLimit 2 is used up)"
    assert (
        told.next_step
        == "nothing by itself: all 3 attempts are used; make room; then `torchyard resume ddp` tries again"
    )
    evidence = "\n".join(told.evidence)
    assert (
        "rank 1 of worker-0 failed first at 2026-01-01 00:00:00 UTC: ValueError: boom, at train.py:12 in step"
        in evidence
    )
    assert "attempt 1 ended (cause user)" in evidence and "attempt 3 ended" not in evidence
    assert "last progress: step 9 of 20, loss 0.5" in evidence
    assert "newest complete checkpoint: snapshot.pt, 10s old" in evidence


def test_equal_faults() -> None:
    story = Story(backoff=10)
    for _ in range(3):
        story.run().end(BOOM)
        story.now += 100
    told = story.told()
    assert told.phase == "Failed" and "the same fault came 3 times in a row" in told.next_step
    assert "the same fault 3 times in a row, with no progress" in told.sentence


def test_between_two_attempts() -> None:
    story = Story()
    story.run().end(BOOM).see(Queued(sentence="2 devices are asked for, 1 is free"))
    told = story.told()
    assert (told.phase, told.cause, told.fault) == ("Pending", Cause.USER, BOOM.fault)
    assert told.sentence == "ddp waits: 2 devices are asked for, 1 is free"
    assert "attempt 2 starts when this is over: 2 devices are asked for, 1 is free" in told.next_step


def test_back_off_says_when() -> None:
    story = Story(backoff=6)
    other = Diagnosis(cause=Cause.USER, sentence="else", fault=Fault(replica="worker-0", code=2))
    for diagnosis in (BOOM, other, BOOM, other):
        story.now = 0.0
        story.run().end(diagnosis)
    told = story.told()
    assert told.phase == "Resuming"
    assert told.next_step == "attempt 5 starts at 00:00:04 UTC, in 4s"


def test_waiting_for_the_first_time() -> None:
    told = Story().see(Queued(sentence="2 devices are asked for, 1 is free")).told()
    assert told.phase == "Pending" and told.cause is None and told.fault is None
    assert told.sentence == "ddp waits: 2 devices are asked for, 1 is free"


def test_starting_names_who_does_not_run_yet() -> None:
    story = Story().launch()
    replicas = (
        ReplicaSeen(name="master-0", state=ReplicaState.RUNNING),
        ReplicaSeen(name="worker-0", state=ReplicaState.STARTING),
    )
    story.see(Observed(observation=Observation(at=T0, replicas=replicas)))
    story.now = 65
    told = story.told()
    assert told.sentence == "ddp has been starting for 1m5s (attempt 1); not yet running: worker-0"
    assert "within 15m" in told.next_step


def test_running() -> None:
    story = Story().run()
    story.now = 3700
    told = story.told(Progress(step=3, total=10, unit="epoch", eta=90.0, at=at(3)))
    assert told.sentence == "ddp has been running for 1h1m (attempt 1): epoch 3 of 10, about 1m30s left"
    older = story.told(Progress(step=9, total=10, unit="epoch", eta=90.0, at=at(3), attempt=7))
    assert older.sentence == "ddp has been running for 1h1m (attempt 1); attempt 7 got to epoch 9"
    assert told.cause is None and "a failure loses all of its work" in told.next_step
    assert "no complete checkpoint of this workload was found" in told.evidence
    kept = story.told(newest=("snapshot.pt", at(3600)))
    assert "torchyard logs ddp -f" in kept.next_step


def test_completed_and_suspicious() -> None:
    fine = Story().run().end(DONE).told()
    assert fine.sentence == "ddp completed: all 2 replicas ended with exit 0"
    assert fine.next_step == "nothing, it is done"
    odd = Diagnosis(cause=None, sentence=DONE.sentence, suspicious="its last lines look like an error")
    told = Story().run().end(odd).told()
    assert "its last lines look like an error" in told.evidence and "torchyard logs ddp" in told.next_step


def test_completed_after_a_failure_has_no_fault() -> None:
    told = Story().run().end(BOOM).run().end(DONE).told()
    assert (told.phase, told.cause, told.fault) == ("Completed", None, None)
    assert any(fact.startswith("attempt 1 ended (cause user)") for fact in told.evidence)


def test_stopping_and_stopped() -> None:
    story = Story().run().see(Asked(desired=Desired.STOPPED, by="ann", grace=12.0))
    ending = story.told()
    assert ending.sentence == "ddp is being stopped by ann" and "killed 12s after" in ending.next_step
    story.end(Diagnosis(cause=Cause.STOPPED, sentence="it was stopped as asked"))
    told = story.told()
    assert told.sentence == "ddp was stopped by ann" and told.cause is None
    assert "`torchyard resume ddp` starts attempt 2" in told.next_step


@pytest.mark.parametrize(
    ("cause", "word"), [(Cause.START, "a start that failed is not retried"), (Cause.DEADLINE, "its time is over")]
)
def test_causes_that_are_not_retried(cause: Cause, word: str) -> None:
    told = Story().run().end(Diagnosis(cause=cause, sentence="so it was")).told()
    assert told.phase == "Failed" and word in told.next_step


def _stories() -> Iterator[Story]:
    yield Story()
    yield Story().launch()
    yield Story().run()
    yield Story().run().end(BOOM)
    yield Story().run().end(DONE)


@given(st.sampled_from(Phase), st.sampled_from(list(_stories())), st.sampled_from(["", "because"]))
def test_every_phase_has_a_sentence_and_a_next_step(phase: Phase, story: Story, reason: str) -> None:
    workload = replace(story.workload, phase=phase, reason=reason)
    attempts = tuple(story.attempts.values())
    told = explain(workload, attempts=attempts, progress=None, newest_checkpoint=None, now=at(99))
    assert told.phase == phase.value and told.sentence and told.next_step
