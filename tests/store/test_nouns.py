"""The smaller nouns: events, claims, clusters, requests that were seen, sealed bytes, the audit log."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine as Database
from sqlalchemy import select
from tests.store.samples import NOW, make

from torchyard.domain.asset import Claim
from torchyard.domain.errors import Conflict
from torchyard.domain.event import Event, EventType
from torchyard.domain.storage import ClaimInfo
from torchyard.store import audit, claims, clusters, events, idempotency, sealed, workloads
from torchyard.store.database import open_database, read, write
from torchyard.store.tables import audit as audit_table


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "torchyard.db")
    yield opened
    opened.dispose()


def test_events_come_back_in_their_order(database: Database) -> None:
    told = [
        Event(
            reason=f"R{n}", message=f"it said\n{n} \N{SNOWMAN}", at=NOW, type=EventType.WARNING, attempt=n, replica="w"
        )
        for n in range(5)
    ]
    with write(database) as c:
        workloads.insert(c, make())
        workloads.insert(c, make("other"))
        events.append(c, "id-ddp", told[:3])
        events.append(c, "id-other", [Event(reason="Else", message="", at=NOW)])
        events.append(c, "id-ddp", ())
        events.append(c, "id-ddp", told[3:])
        numbered = events.listing(c, "id-ddp")
        assert [event for _, event in numbered] == told
        assert [n for n, _ in numbered] == sorted({n for n, _ in numbered})
        assert events.listing(c, "id-ddp", offset=1, limit=2) == numbered[1:3]
        assert events.listing(c, "id-ddp", newest_first=True, limit=2) == numbered[:2:-1]


def test_events_sealed_bytes_and_attempts_go_with_their_workload(database: Database) -> None:
    with write(database) as c:
        workloads.insert(c, make())
        workloads.insert(c, make("other"))
        for one in ("id-ddp", "id-other"):
            events.append(c, one, [Event(reason="R", message="", at=NOW)])
            sealed.put(c, one, b"\x00old")
            sealed.put(c, one, b"\x00new")
        workloads.remove(c, "id-ddp")
        assert events.listing(c, "id-ddp") == () and sealed.fetch(c, "id-ddp") is None
        assert len(events.listing(c, "id-other")) == 1 and sealed.fetch(c, "id-other") == b"\x00new"


def claim(name: str, project: str = "default") -> Claim:
    return Claim(
        id=f"id-{project}-{name}",
        name=name,
        claim_name=name,
        project=project,
        path=f"/{name}",
        info=ClaimInfo.model_validate({"size": "10TB", "accessModes": {"readWriteMany": True}}),
        created_at=NOW,
        created_by="ann",
    )


def test_a_claim_has_its_name_alone_in_its_project(database: Database) -> None:
    with write(database) as c:
        claims.insert(c, claim("data"))
        claims.insert(c, claim("data", "vision"))
        claims.insert(c, claim("checkpoints"))
    with pytest.raises(Conflict, match="'data' in project default already"), write(database) as c:
        claims.insert(c, claim("data"))
    with write(database) as c:
        assert [one.name for one in claims.listing(c, "default")] == ["checkpoints", "data"]
        assert len(claims.listing(c)) == 3
        assert claims.fetch(c, "id-vision-data") == claim("data", "vision")
        claims.remove(c, "id-default-data")
        assert claims.fetch(c, "id-default-data") is None
        claims.insert(c, claim("data"))


def test_this_machine_is_one_cluster_for_ever(database: Database) -> None:
    with write(database) as c:
        clusters.ensure_local(c, NOW)
        (first,) = clusters.listing(c)
        clusters.ensure_local(c, NOW + timedelta(days=1))
        assert clusters.listing(c) == (first,)
        assert (first.name, first.engine, first.created_at) == ("local", "local", NOW)


def test_a_repeated_request_is_known_for_a_while_and_to_its_actor(database: Database) -> None:
    with write(database) as c:
        idempotency.remember(c, "key", "ann", "w1", "hash", NOW)
        known = idempotency.recall(c, "key", "ann", NOW - timedelta(days=1))
        assert known is not None and (known.workload_id, known.body_hash) == ("w1", "hash")
        assert idempotency.recall(c, "key", "ann", NOW) is None
        assert idempotency.recall(c, "key", "ben", NOW - timedelta(days=1)) is None
        idempotency.remember(c, "key", "ann", "w2", "hash2", NOW + timedelta(days=1))
        known = idempotency.recall(c, "key", "ann", NOW)
        assert known is not None and known.workload_id == "w2"


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(Conflict), write(database) as c:
        audit.append(c, "ann", "create", "pvc/data", NOW)
        claims.insert(c, claim("data"))
        claims.insert(c, claim("data"))
    with read(database) as c:
        assert claims.listing(c) == () and c.execute(select(audit_table)).all() == []
    with write(database) as c:
        audit.append(c, "ann", "delete", "pvc/data", NOW)
    with read(database) as c:
        rows = c.execute(select(audit_table.c.actor, audit_table.c.action, audit_table.c.object)).all()
    assert [tuple(row) for row in rows] == [("ann", "delete", "pvc/data")]
