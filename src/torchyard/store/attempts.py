"""Attempts of workloads, each as it was last seen."""

from pydantic import TypeAdapter
from sqlalchemy import Connection, delete, insert, select

from torchyard.domain.workload import Attempt
from torchyard.store.tables import attempts as table

_DOCUMENT = TypeAdapter(Attempt)


def save(c: Connection, workload_id: str, attempt: Attempt) -> None:
    """Remember an attempt as it is now."""
    c.execute(delete(table).where(table.c.workload_id == workload_id, table.c.number == attempt.number))
    text = _DOCUMENT.dump_json(attempt, by_alias=True, exclude_defaults=True).decode()
    c.execute(insert(table).values(workload_id=workload_id, number=attempt.number, document=text))


def listing(c: Connection, workload_id: str) -> tuple[Attempt, ...]:
    """All attempts of a workload, the first one first."""
    rows = c.execute(select(table.c.document).where(table.c.workload_id == workload_id).order_by(table.c.number))
    return tuple(_DOCUMENT.validate_json(row.document) for row in rows)
