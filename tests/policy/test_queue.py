"""The line for devices: by priority and age, all replicas or none, within quotas; the sentence for those who wait."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.builders import submission

from torchyard.domain.spec import Kind
from torchyard.domain.workload import Phase, Workload
from torchyard.policy.queue import PRIORITIES, Holder, Picked, Share, pick

NOW = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)


def waiting(
    name: str,
    devices: int,
    age: int = 0,
    attempts: int = 0,
    back_off: int | None = None,
    project: str = "default",
    priority: str | None = None,
) -> Workload:
    return Workload(
        id=name,
        name=name,
        kind=Kind.TRAINING,
        project=project,
        cluster="local",
        submission=submission(compute={"gpuDevicesRequest": devices}, priorityClass=priority),
        created_at=NOW - timedelta(seconds=age),
        created_by="me",
        phase=Phase.PENDING,
        phase_at=NOW,
        attempts=attempts,
        not_before=None if back_off is None else NOW + timedelta(seconds=back_off),
    )


def picked(
    *line: Workload,
    total: int = 8,
    foreign: tuple[str, ...] = (),
    holders: tuple[Holder, ...] = (),
    shares: Mapping[str, Share] | None = None,
) -> Picked:
    return pick(line, total=total, foreign=foreign, holders=holders, shares=shares or {}, now=NOW)


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


def test_priority_comes_before_age_and_retries() -> None:
    line = (
        waiting("again", 8, age=9, attempts=1),
        waiting("plain", 8, age=8),
        waiting("urgent", 8, priority="very-high"),
        waiting("idle", 8, age=9, attempts=1, priority="very-low"),
        waiting("low", 8, age=7, priority="low"),
    )
    order = []
    while line:
        (first,) = picked(*line).starts
        order.append(first.name)
        line = tuple(w for w in line if w != first)
    assert order == ["urgent", "again", "plain", "low", "idle"]


def test_a_project_without_room_holds_up_nobody_else() -> None:
    shares = {"vision": Share(quota=6, holders=(Holder(name="seg", devices=4),))}
    line = [
        *(waiting(f"v{n}", 4, age=9 - n, project="vision") for n in range(3)),
        waiting("small", 1, age=1, project="vision"),
        waiting("text", 4, project="text"),
    ]
    result = picked(*line, holders=(Holder(name="seg", devices=4),), shares=shares)
    assert names(result) == ["text"]
    assert result.sentences == {
        "v0": "needs 4 devices, project vision has 2 of 6 free (seg holds 4); next in line",
        "v1": "needs 4 devices, project vision has 2 of 6 free (seg holds 4); 2nd in line, behind v0 which needs 4",
        "v2": "needs 4 devices, project vision has 2 of 6 free (seg holds 4); 3rd in line",
        "small": "needs 1 device, project vision has 2 of 6 free (seg holds 4); 4th in line",
    }


def test_who_needs_more_than_the_quota_hears_that_it_can_never_start() -> None:
    result = picked(
        waiting("huge", 7, age=9, project="vision"),
        waiting("fits", 6, project="vision"),
        shares={"vision": Share(quota=6)},
    )
    assert names(result) == ["fits"]
    assert result.sentences == {
        "huge": "needs 7 devices, and the quota of project vision is 6: it cannot start before that is raised"
    }


def test_a_quota_that_was_lowered_below_what_is_held_is_none_free() -> None:
    shares = {"vision": Share(quota=2, holders=(Holder(name="seg", devices=4),))}
    result = picked(waiting("a", 2, project="vision"), holders=shares["vision"].holders, shares=shares)
    assert result.sentences == {"a": "needs 2 devices, project vision has 0 of 2 free (seg holds 4); next in line"}


def test_without_devices_no_quota_counts() -> None:
    assert names(picked(waiting("cpu", 0, project="vision"), shares={"vision": Share(quota=0)})) == ["cpu"]


PROJECTS = ("default", "vision", "text")
rows = st.tuples(
    st.integers(0, 10),
    st.integers(0, 5),
    st.integers(0, 2),
    st.none() | st.integers(-5, 5),
    st.sampled_from(PROJECTS),
    st.sampled_from((None, "very-low", "medium", "very-high")),
)
workloads = st.lists(rows, max_size=12).map(lambda found: tuple(waiting(f"w{i}", *row) for i, row in enumerate(found)))
held = st.lists(st.integers(1, 4), max_size=3).map(
    lambda sizes: tuple(Holder(name=f"h{i}", devices=size) for i, size in enumerate(sizes))
)
shares_of = st.dictionaries(st.sampled_from(PROJECTS), st.builds(Share, quota=st.integers(0, 10), holders=held))


def ready(workload: Workload) -> bool:
    return workload.not_before is None or workload.not_before <= NOW


def in_line(workload: Workload, total: int, shares: Mapping[str, Share]) -> bool:
    share = shares.get(workload.project)
    most = total if share is None else min(total, share.quota)
    return ready(workload) and 0 < workload.submission.devices <= most


def order(workload: Workload) -> tuple[int, bool, datetime, str]:
    priority = PRIORITIES.index(workload.submission.spec.priority_class or "low")
    return -priority, workload.attempts == 0, workload.created_at, workload.id


def devices(found: tuple[Workload, ...]) -> int:
    return sum(w.submission.devices for w in found)


def holding(holders: tuple[Holder, ...]) -> int:
    return sum(holder.devices for holder in holders)


@given(workloads, st.integers(0, 10), st.integers(0, 2), held, shares_of)
def test_promises(
    line: tuple[Workload, ...], total: int, others: int, holders: tuple[Holder, ...], shares: dict[str, Share]
) -> None:
    result = pick(line, total=total, foreign=("x",) * others, holders=holders, shares=shares, now=NOW)
    free = total - others - holding(holders)
    # Never more than there is, and never over quota.
    assert devices(result.starts) <= max(0, free)
    for name, share in shares.items():
        theirs = tuple(w for w in result.starts if w.project == name)
        assert devices(theirs) <= max(0, share.quota - holding(share.holders))
    # Each either starts or is told why not.
    started = {workload.id for workload in result.starts}
    assert started.isdisjoint(result.sentences)
    assert started | set(result.sentences) == {w.id for w in line}
    # Who is not ready never starts; who needs nothing always does when ready.
    for workload in line:
        if workload.submission.devices == 0 or not ready(workload):
            assert (workload.id in started) == ready(workload)
    assert [w for w in result.starts if w.submission.devices] == sorted(
        (w for w in result.starts if w.submission.devices), key=order
    )


@given(workloads, st.integers(0, 10), held, shares_of)
def test_nobody_waits_who_could_start(
    line: tuple[Workload, ...], total: int, holders: tuple[Holder, ...], shares: dict[str, Share]
) -> None:
    """Whoever waits finds its project full, or somebody of it before it in that line; or the cluster, likewise."""
    result = pick(line, total=total, foreign=(), holders=holders, shares=shares, now=NOW)
    started = {w.id for w in result.starts}
    free = total - holding(holders)
    left = {name: share.quota - holding(share.holders) for name, share in shares.items()}
    closed: set[str] = set()
    cluster_closed = False
    for workload in sorted((w for w in line if in_line(w, total, shares)), key=order):
        needs = workload.submission.devices
        if workload.id in started:
            assert workload.project not in closed and not cluster_closed, "nobody overtakes"
            free -= needs
            if workload.project in left:
                left[workload.project] -= needs
        elif workload.project in closed or needs > left.get(workload.project, needs):
            closed.add(workload.project)
        else:
            assert cluster_closed or needs > free
            cluster_closed = True


@given(workloads, st.integers(0, 10), shares_of, st.randoms(use_true_random=False))
def test_the_order_of_asking_does_not_matter(
    line: tuple[Workload, ...], total: int, shares: dict[str, Share], random: Random
) -> None:
    shuffled = list(line)
    random.shuffle(shuffled)
    assert picked(*shuffled, total=total, shares=shares) == picked(*line, total=total, shares=shares)


@given(workloads, st.integers(1, 10), shares_of)
def test_everybody_in_line_starts_when_all_before_have_ended(
    line: tuple[Workload, ...], total: int, found: dict[str, Share]
) -> None:
    shares = {name: replace(share, holders=()) for name, share in found.items()}
    left = tuple(w for w in line if in_line(w, total, shares))
    for _ in range(len(left) + 1):
        if not left:
            break
        started = {w.id for w in picked(*left, total=total, shares=shares).starts}
        assert started
        left = tuple(w for w in left if w.id not in started)
    assert not left


@given(workloads, st.integers(0, 10), held, shares_of)
def test_a_full_project_makes_no_difference_to_the_others(
    line: tuple[Workload, ...], total: int, holders: tuple[Holder, ...], shares: dict[str, Share]
) -> None:
    full = shares | {"vision": Share(quota=4, holders=(Holder(name="seg", devices=4),))}
    others = tuple(w for w in line if w.project != "vision")
    result = picked(*line, total=total, holders=holders, shares=full)
    without = picked(*others, total=total, holders=holders, shares=full)
    assert [w for w in result.starts if w.project != "vision"] == list(without.starts)
    assert {w.id: result.sentences[w.id] for w in others if w.id in result.sentences} == without.sentences
