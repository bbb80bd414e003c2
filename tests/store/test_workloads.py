"""Workloads in the database: names, pages, and writes that only the lease's holder can make."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine as Database
from tests.store.samples import NOW, make

from torchyard.domain.errors import Conflict, Invalid, Unavailable
from torchyard.domain.workload import Desired, Phase, Progress
from torchyard.store import workloads
from torchyard.store.database import open_database, read, write
from torchyard.store.workloads import Filter, WorkloadQuery


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "torchyard.db")
    yield opened
    opened.dispose()


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
        ("completedAt", ">=", "2000-01-01", []),
        ("name", "!@", "a", ["b", "c"]),
        ("phase", "=$", "ing", ["a", "b"]),
        ("phase", "=^", "F", ["c"]),
        ("type", "==", "training", ["a", "b", "c"]),
        ("projectName", "!=", "default", []),
        ("clusterName", "=@", "oca", ["a", "b", "c"]),
        ("submittedBy", "==", "ann", ["a", "b", "c"]),
        ("distributedFramework", "==", "", ["a", "b", "c"]),
        ("deletedAt", "==", "", ["a", "b", "c"]),
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
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = workloads.page(c, WorkloadQuery(limit=2, offset=offset, sort_by="name", descending=False))
            seen += [w.name for w in page.rows]
            assert page.total == 5
            offset = page.next
    assert seen == [f"w{number}" for number in range(5)]


def test_pages_are_searched_and_no_longer_than_500(database: Database) -> None:
    with write(database) as c:
        for number in range(502):
            workloads.insert(c, make(f"w{number}", project="vision" if number % 2 else "default"))
        page = workloads.page(c, WorkloadQuery(limit=10_000))
        assert (len(page.rows), page.total, page.next) == (500, 502, 500)
        assert workloads.page(c, WorkloadQuery(search="w50", project="vision")).total == 1, "w501 of w50, w500, w501"
        assert workloads.page(c, WorkloadQuery(search="w_")).total == 0, "an underscore is an underscore"


def test_the_deleted_are_on_a_page_of_their_own(database: Database) -> None:
    with write(database) as c:
        workloads.insert(c, make("here"))
        workloads.insert(c, make("gone", desired=Desired.DELETED, phase=Phase.DELETING, deleted_at=NOW))
        assert [w.name for w in workloads.page(c, WorkloadQuery()).rows] == ["here"]
        assert [w.name for w in workloads.page(c, WorkloadQuery(deleted=True)).rows] == ["gone"]


def test_what_ended_long_ago_can_be_pruned(database: Database) -> None:
    old, code = NOW - timedelta(days=30), "sha256:" + "0" * 64
    with_code = make("a").submission.model_copy(
        update={"torchyard": make().submission.torchyard.model_copy(update={"code": code})}
    )
    with write(database) as c:
        workloads.insert(c, make("runs", phase=Phase.RUNNING, submission=with_code))
        workloads.insert(c, make("new", phase=Phase.FAILED, completed_at=NOW))
        workloads.insert(c, make("old", phase=Phase.FAILED, completed_at=old))
        workloads.insert(c, make("gone", phase=Phase.DELETING, desired=Desired.DELETED, deleted_at=old))
        assert {w.name for w in workloads.ended_before(c, NOW - timedelta(days=1))} == {"old", "gone"}
        assert workloads.codes(c, without=set()) == {code}
        assert workloads.codes(c, without={"id-runs"}) == set()


def test_a_record_that_cannot_be_read_hides_no_other(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with write(database) as c:
        workloads.insert(c, make("whole"))
        workloads.insert(c, make("torn"))
        c.exec_driver_sql("UPDATE workloads SET document = '{\"id\": 3' WHERE name = 'torn'")
        assert [w.name for w in workloads.live(c)] == ["whole"]
        assert [w.name for w in workloads.page(c, WorkloadQuery()).rows] == ["whole"]
        with pytest.raises(Unavailable, match="id-torn cannot be read"):
            workloads.fetch(c, "id-torn")
    assert "id-torn cannot be read" in caplog.text


@pytest.mark.parametrize("query", [WorkloadQuery(sort_by="nope"), WorkloadQuery(filters=(Filter("nope", "==", ""),))])
def test_unknown_fields_are_named(database: Database, query: WorkloadQuery) -> None:
    with read(database) as c, pytest.raises(Invalid, match="there is no field 'nope'") as refused:
        workloads.page(c, query)
    assert "phase" in (refused.value.details or "")


def test_unknown_operators_are_named(database: Database) -> None:
    with read(database) as c, pytest.raises(Invalid, match="there is no operator '~'") as refused:
        workloads.page(c, WorkloadQuery(filters=(Filter("name", "~", ""),)))
    assert "=@" in (refused.value.details or "")


def test_progress_needs_no_lease_and_goes_with_its_workload(database: Database) -> None:
    progress = Progress(step=3, total=10, unit="epoch", loss=0.5)
    with write(database) as c:
        workloads.insert(c, make())
        workloads.save_progress(c, "id-ddp", progress)
        assert workloads.progress(c, ["id-ddp", "other"]) == {"id-ddp": progress}
        workloads.remove(c, "id-ddp")
        assert workloads.progress(c, ["id-ddp"]) == {}
