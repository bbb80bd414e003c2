"""Events, numbered in the order they were written."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from torchyard.domain.event import Event, EventType
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import events as table


def append(c: Connection, workload_id: str, events: Sequence[Event]) -> None:
    """Remember events of one workload, in this order."""
    rows = [
        {
            "workload_id": workload_id,
            "at": to_text(e.at),
            "type": e.type.value,
            "reason": e.reason,
            "message": e.message,
            "attempt": e.attempt,
            "replica": e.replica,
        }
        for e in events
    ]
    if rows:
        c.execute(insert(table), rows)


def listing(
    c: Connection, workload_id: str, *, offset: int = 0, limit: int = 500, newest_first: bool = False
) -> tuple[tuple[int, Event], ...]:
    """Events of one workload with their numbers."""
    order = table.c.id.desc() if newest_first else table.c.id.asc()
    where = table.c.workload_id == workload_id
    rows = c.execute(select(table).where(where).order_by(order).offset(offset).limit(limit))
    return tuple(
        (
            row.id,
            Event(
                reason=row.reason,
                message=row.message,
                at=from_text(row.at),
                type=EventType(row.type),
                attempt=row.attempt,
                replica=row.replica,
            ),
        )
        for row in rows
    )
