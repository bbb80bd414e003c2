"""Whole workloads through the database: whatever a workload may hold comes back as it was."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from pydantic import TypeAdapter
from sqlalchemy import Engine as Database
from tests.store import samples

from torchyard.domain.workload import Attempt, Workload
from torchyard.store import attempts, workloads
from torchyard.store.database import open_database, read, write

JSON = TypeAdapter(Workload)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(tmp_path_factory.mktemp("documents") / "torchyard.db")
    yield opened
    opened.dispose()


@settings(max_examples=50)
@given(workload=samples.workloads)
def test_a_workload_comes_back_whole(database: Database, workload: Workload) -> None:
    with write(database) as c:
        workloads.insert(c, workload)
    with read(database) as c:
        kept = workloads.fetch(c, workload.id)
    with write(database) as c:
        workloads.remove(c, workload.id)
    assert kept is not None and kept == workload
    assert JSON.dump_json(kept) == JSON.dump_json(workload), "equal is not enough: 1 == True == 1.0"


@settings(max_examples=30)
@given(first=samples.attempts, second=samples.attempts)
def test_an_attempt_is_kept_as_last_seen(database: Database, first: Attempt, second: Attempt) -> None:
    with write(database) as c:
        workloads.insert(c, samples.make())
        attempts.save(c, "id-ddp", first)
        attempts.save(c, "id-ddp", second)
        kept = attempts.listing(c, "id-ddp")
        workloads.remove(c, "id-ddp")
        assert attempts.listing(c, "id-ddp") == ()
    assert kept == tuple(sorted({first.number: first, second.number: second}.values(), key=lambda a: a.number))
