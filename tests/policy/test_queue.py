"""The line for devices: first come, first served, all replicas or none, and the sentence for those who wait."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.builders import submission

from torchyard.domain.spec import Kind
from torchyard.domain.workload import Phase, Workload
from torchyard.policy.queue import Holder, Picked, pick

NOW = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)


def waiting(name: str, devices: int, age: int = 0, attempts: int = 0, back_off: int | None = None) -> Workload:
    return Workload(
        id=name,
        name=name,
        kind=Kind.TRAINING,
        project="default",
        cluster="local",
        submission=submission(compute={"gpuDevicesRequest": devices}),
        created_at=NOW - timedelta(seconds=age),
        created_by="me",
        phase=Phase.PENDING,
        phase_at=NOW,
        attempts=attempts,
        not_before=None if back_off is None else NOW + timedelta(seconds=back_off),
    )


def picked(*line: Workload, total: int = 8, foreign: tuple[str, ...] = (), holders: tuple[Holder, ...] = ()) -> Picked:
    return pick(line, total=total, foreign=foreign, holders=holders, now=NOW)


def names(result: Picked) -> list[str]:
    return [workload.name for workload in result.starts]


def test_the_oldest_starts_first_and_nobody_overtakes() -> None:
    result = picked(waiting("small", 1, age=1), waiting("big", 6, age=2), waiting("old", 4, age=3))
    assert names(result) == ["old"]
    assert result.sentences == {
        "big": "needs 6 devices, 4 of 8 are free (old holds 4); next in line",
        "small": "needs 1 device, 4 of 8 are free (old holds 4); 2nd in line, behind big which needs 6",
    }


def test_the_sentence_has_the_numbers() -> None:
    holders = (Holder(name="ddp", devices=4), Holder(name="exp1", devices=2))
    line = [waiting(f"w{i}", 4, age=10 - i) for i in range(3)]
    assert picked(*line, holders=holders).sentences["w2"] == (
        "needs 4 devices, 2 of 8 are free (ddp holds 4, exp1 holds 2); 3rd in line"
    )


def test_devices_of_others_are_named() -> None:
    result = picked(waiting("a", 2), total=2, foreign=("python of bob (pid 42) uses it",))
    assert result.sentences["a"] == (
        "needs 2 devices, 1 of 2 is free (1 not ours: python of bob (pid 42) uses it); next in line"
    )


def test_resuming_workloads_come_before_new_ones() -> None:
    assert names(picked(waiting("new", 8, age=9), waiting("again", 8, age=1, attempts=1))) == ["again"]


def test_without_devices_nobody_waits() -> None:
    holders = (Holder(name="ddp", devices=8),)
    assert names(picked(waiting("a", 8, age=5), waiting("b", 0), holders=holders)) == ["b"]


def test_a_back_off_holds_nobody_up_and_keeps_its_place() -> None:
    later = waiting("failed", 8, age=9, attempts=2, back_off=30)
    result = picked(later, waiting("next", 8))
    assert names(result) == ["next"]
    assert result.sentences["failed"] == "tries again at 12:00:30 UTC, after a back-off"
    assert names(picked(waiting("failed", 8, age=9, attempts=2, back_off=-1), waiting("next", 8))) == ["failed"]
    assert names(picked(waiting("none", 0, back_off=30))) == []


def test_what_can_never_start_holds_nobody_up() -> None:
    result = picked(waiting("huge", 9, age=9), waiting("next", 8))
    assert names(result) == ["next"]
    assert result.sentences == {"huge": "needs 9 devices, and the cluster has 8"}


def test_far_back_the_sentence_stays_the_same_when_others_start_and_end() -> None:
    line = [waiting(f"w{i:02}", 1, age=100 - i) for i in range(30)]
    before = picked(*line, holders=(Holder(name="a", devices=8),)).sentences
    after = picked(*line[1:], holders=(Holder(name="b", devices=8),)).sentences
    assert before["w29"] == after["w29"] == "needs 1 device; 10 workloads or more are before it in line"


@pytest.mark.parametrize(("place", "words"), [(2, "3rd"), (3, "4th"), (9, "10th")])
def test_places_read_well(place: int, words: str) -> None:
    line = [waiting(f"w{i:02}", 1, age=100 - i) for i in range(12)]
    assert f"; {words} in line" in picked(*line, total=1, foreign=("x",)).sentences[f"w{place:02}"]


workloads = st.lists(
    st.builds(
        lambda devices, age, attempts, back_off: (devices, age, attempts, back_off),
        st.integers(0, 10),
        st.integers(0, 5),
        st.integers(0, 2),
        st.none() | st.integers(-5, 5),
    ),
    max_size=12,
).map(lambda rows: tuple(waiting(f"w{i}", *row) for i, row in enumerate(rows)))
held = st.lists(st.integers(1, 4), max_size=3).map(
    lambda sizes: tuple(Holder(name=f"h{i}", devices=size) for i, size in enumerate(sizes))
)


def in_line(workload: Workload, total: int) -> bool:
    ready = workload.not_before is None or workload.not_before <= NOW
    return ready and 0 < workload.submission.devices <= total


def order(workload: Workload) -> tuple[bool, datetime, str]:
    return workload.attempts == 0, workload.created_at, workload.id


@given(workloads, st.integers(0, 10), st.integers(0, 2), held)
def test_promises(line: tuple[Workload, ...], total: int, others: int, holders: tuple[Holder, ...]) -> None:
    result = pick(line, total=total, foreign=("x",) * others, holders=holders, now=NOW)
    started = {workload.id for workload in result.starts}
    free = total - others - sum(holder.devices for holder in holders)
    # Never more than there is.
    assert sum(w.submission.devices for w in result.starts) <= max(0, free)
    # Each either starts or is told why not.
    assert started.isdisjoint(result.sentences)
    assert started | set(result.sentences) == {w.id for w in line}
    # Those in line start in order, without a gap, until the first that does not fit.
    queue = sorted((w for w in line if in_line(w, total)), key=order)
    expected = []
    for workload in queue:
        if workload.submission.devices > free:
            break
        expected.append(workload.id)
        free -= workload.submission.devices
    assert [w.id for w in result.starts if w.submission.devices] == expected
    # Who is not ready never starts; who needs nothing always does when ready.
    for workload in line:
        ready = workload.not_before is None or workload.not_before <= NOW
        if workload.submission.devices == 0 or not ready:
            assert (workload.id in started) == ready


@given(workloads, st.integers(0, 10), st.randoms(use_true_random=False))
def test_the_order_of_asking_does_not_matter(line: tuple[Workload, ...], total: int, random: Random) -> None:
    shuffled = list(line)
    random.shuffle(shuffled)
    facts = {"total": total, "foreign": (), "holders": (), "now": NOW}
    assert pick(tuple(shuffled), **facts) == pick(line, **facts)


@given(workloads, st.integers(1, 10))
def test_everybody_in_line_starts_when_all_before_have_ended(line: tuple[Workload, ...], total: int) -> None:
    left = tuple(w for w in line if in_line(w, total))
    for _ in range(len(left) + 1):
        if not left:
            break
        started = {w.id for w in pick(left, total=total, foreign=(), holders=(), now=NOW).starts}
        assert started
        left = tuple(w for w in left if w.id not in started)
    assert not left
