"""Which request made which workload, so that a repeated request makes no second one."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select

from torchyard.store.moments import to_text
from torchyard.store.tables import idempotency as table

WINDOW = timedelta(days=1)
"""How long a request is remembered."""


@dataclass(frozen=True, slots=True)
class Known:
    """An earlier request."""

    workload_id: str
    body_hash: str


def remember(c: Connection, key: str, actor: str, workload_id: str, body_hash: str, at: datetime) -> None:
    """This request made this workload."""
    c.execute(delete(table).where(table.c.key == key, table.c.actor == actor))
    c.execute(insert(table).values(key=key, actor=actor, workload_id=workload_id, body_hash=body_hash, at=to_text(at)))


def forget_old(c: Connection, now: datetime) -> None:
    """Forget requests that nobody repeats any more."""
    c.execute(delete(table).where(table.c.at < to_text(now - WINDOW)))


def recall(c: Connection, key: str, actor: str, newer_than: datetime) -> Known | None:
    """The request that used this key, if it is not too old."""
    where = (table.c.key == key, table.c.actor == actor, table.c.at > to_text(newer_than))
    row = c.execute(select(table.c.workload_id, table.c.body_hash).where(*where)).first()
    return None if row is None else Known(row.workload_id, row.body_hash)
