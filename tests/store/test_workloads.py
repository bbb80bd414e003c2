"""Workloads in the database: whole documents back, names, pages, and writes that only the lease's holder can make."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine as Database

from torchyard.domain.cause import Cause, Diagnosis, Fault
from torchyard.domain.errors import Conflict, Invalid
from torchyard.domain.launch import Handle
from torchyard.domain.observation import RankSeen, ReplicaSeen, ReplicaState
from torchyard.domain.spec import Submission
from torchyard.domain.workload import Attempt, Desired, Phase, Progress, Workload
from torchyard.store import attempts, workloads
from torchyard.store.database import open_database, read, write
from torchyard.store.workloads import Filter, WorkloadQuery

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "torchyard.db")
    yield opened
    opened.dispose()


def make(name: str = "ddp", **more: object) -> Workload:
    submission = Submission.model_validate({"kind": "training", "name": name, "spec": {"command": "true"}})
    plain = Workload(
        id=f"id-{name}",
        name=name,
        kind=submission.kind,
        project="default",
        cluster="local",
        submission=submission,
        created_at=NOW,
        created_by="ann",
        phase=Phase.CREATING,
        phase_at=NOW,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


_MOMENTS = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))
_TEXT = st.text(max_size=30)
_RANKS = st.builds(
    RankSeen,
    rank=st.integers(0, 99),
    local_rank=st.integers(0, 7),
    pid=st.integers(1, 10**6),
    started_at=_MOMENTS,
    ended_at=st.none() | _MOMENTS,
    code=st.none() | st.integers(0, 255),
)
_ATTEMPTS = st.builds(
    Attempt,
    number=st.integers(1, 50),
    reason=_TEXT,
    created_at=_MOMENTS,
    devices=st.integers(0, 8),
    handle=st.none() | st.builds(Handle, cluster=_TEXT, key=_TEXT, ref=_TEXT),
    started=st.booleans(),
    ended_at=st.none() | _MOMENTS,
    replicas=st.lists(
        st.builds(
            ReplicaSeen,
            name=st.just("worker-0"),
            state=st.sampled_from(list(ReplicaState)),
            ranks=st.lists(_RANKS, max_size=2).map(tuple),
            left_behind=st.lists(_TEXT, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    diagnosis=st.none()
    | st.builds(
        Diagnosis,
        cause=st.none() | st.sampled_from(list(Cause)),
        sentence=_TEXT,
        fault=st.none() | st.builds(Fault, replica=st.just("worker-0"), last_lines=st.lists(_TEXT).map(tuple)),
    ),
)


@settings(max_examples=60)
@given(attempt=_ATTEMPTS, phase=st.sampled_from(list(Phase)), desired=st.sampled_from(list(Desired)))
def test_what_is_remembered_comes_back_whole(
    tmp_path_factory: pytest.TempPathFactory, attempt: Attempt, phase: Phase, desired: Desired
) -> None:
    database = open_database(tmp_path_factory.mktemp("db") / "torchyard.db")
    workload = make(attempt=attempt, attempts=attempt.number, phase=phase, desired=desired)
    with write(database) as c:
        workloads.insert(c, workload)
        attempts.save(c, workload.id, attempt)
        attempts.save(c, workload.id, attempt)
    with read(database) as c:
        assert workloads.fetch(c, workload.id) == workload
        assert attempts.listing(c, workload.id) == (attempt,)
    database.dispose()


def test_a_name_is_taken_until_its_workload_is_deleted(database: Database) -> None:
    with write(database) as c:
        workloads.insert(c, make())
    with pytest.raises(Conflict, match="'ddp' in project default already"), write(database) as c:
        workloads.insert(c, make(id="other"))
    with write(database) as c:
        workloads.insert(c, make(id="elsewhere", project="vision"))
        lease = workloads.lease(c, "id-ddp", "me", NOW, 60)
        assert lease is not None
        assert workloads.save(c, make(desired=Desired.DELETED), lease, NOW)
        workloads.insert(c, make(id="other"))
        found = workloads.find(c, "default", "ddp")
    assert found is not None and found.id == "other"


def test_numbers_go_on_after_deletion(database: Database) -> None:
    with write(database) as c:
        assert workloads.next_name(c, "default", "train") == "train-1"
        workloads.insert(c, make("train-9", desired=Desired.DELETED))
        workloads.insert(c, make("train-x"))
        workloads.insert(c, make("trainer-30"))
        assert workloads.next_name(c, "default", "train") == "train-10"


def test_only_the_holder_of_the_lease_can_write(database: Database) -> None:
    workload = make()
    with write(database) as c:
        workloads.insert(c, workload)
        old = workloads.lease(c, workload.id, "a", NOW, 60)
        assert old is not None
        assert workloads.lease(c, workload.id, "b", NOW, 60) is None
    later = NOW + timedelta(seconds=61)
    with write(database) as c:
        new = workloads.lease(c, workload.id, "b", later, 60)
        assert new is not None and new.token > old.token
        assert not workloads.save(c, replace(workload, phase=Phase.FAILED), old, later)
        assert workloads.save(c, replace(workload, phase=Phase.RUNNING), new, later)
    with read(database) as c:
        kept = workloads.fetch(c, workload.id)
    assert kept is not None and kept.phase is Phase.RUNNING


def test_an_expired_lease_is_no_lease(database: Database) -> None:
    with write(database) as c:
        workloads.insert(c, make())
        lease = workloads.lease(c, "id-ddp", "a", NOW, 60)
        assert lease is not None
        assert not workloads.save(c, make(), lease, NOW + timedelta(seconds=60))


def test_the_next_server_takes_the_leases_of_the_dead_one(database: Database) -> None:
    with write(database) as c:
        workloads.insert(c, make())
        workloads.lease(c, "id-ddp", "dead", NOW, 60)
        workloads.release_others(c, "next")
        assert workloads.lease(c, "id-ddp", "next", NOW, 60) is not None


def test_live_is_what_is_not_settled(database: Database) -> None:
    with write(database) as c:
        workloads.insert(c, make("waits"))
        workloads.insert(c, make("ended", phase=Phase.COMPLETED))
        workloads.insert(c, make("gone", phase=Phase.DELETING, desired=Desired.DELETED, deleted_at=NOW))
        workloads.insert(c, make("going", phase=Phase.DELETING, desired=Desired.DELETED))
        assert [w.name for w in workloads.live(c)] == ["waits", "going"]


@pytest.mark.parametrize(
    ("field", "op", "value", "names"),
    [
        ("phase", "==", "running", ["b"]),
        ("phase", "!=", "Running", ["a", "c"]),
        ("name", "=^", "a", ["a"]),
        ("name", "=@", "%", []),
        ("createdAt", ">=", "2026-01-01T00:00:01", ["b", "c"]),
        ("completedAt", "==", "", ["a", "b", "c"]),
    ],
)
def test_pages_are_filtered(database: Database, field: str, op: str, value: str, names: list[str]) -> None:
    with write(database) as c:
        for number, (name, phase) in enumerate({"a": Phase.PENDING, "b": Phase.RUNNING, "c": Phase.FAILED}.items()):
            workloads.insert(c, make(name, phase=phase, created_at=NOW + timedelta(seconds=number)))
        query = WorkloadQuery(filters=(Filter(field, op, value),), sort_by="name", descending=False)
        assert [w.name for w in workloads.page(c, query).rows] == names


def test_pages_follow_each_other(database: Database) -> None:
    with write(database) as c:
        for number in range(5):
            workloads.insert(c, make(f"w{number}"))
        seen, offset = [], 0
        while offset is not None:
            page = workloads.page(c, WorkloadQuery(limit=2, offset=offset, sort_by="name", descending=False))
            seen += [w.name for w in page.rows]
            assert page.total == 5
            offset = page.next
    assert seen == [f"w{number}" for number in range(5)]


@pytest.mark.parametrize("query", [WorkloadQuery(sort_by="nope"), WorkloadQuery(filters=(Filter("nope", "==", ""),))])
def test_unknown_fields_are_named(database: Database, query: WorkloadQuery) -> None:
    with read(database) as c, pytest.raises(Invalid, match="there is no field 'nope'") as refused:
        workloads.page(c, query)
    assert "phase" in (refused.value.details or "")


def test_progress_needs_no_lease_and_goes_with_its_workload(database: Database) -> None:
    progress = Progress(step=3, total=10, unit="epoch", loss=0.5)
    with write(database) as c:
        workloads.insert(c, make())
        workloads.save_progress(c, "id-ddp", progress)
        assert workloads.progress(c, ["id-ddp", "other"]) == {"id-ddp": progress}
        workloads.remove(c, "id-ddp")
        assert workloads.progress(c, ["id-ddp"]) == {}
