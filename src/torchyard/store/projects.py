"""Projects. `default` is there from the first start."""

from datetime import datetime

from sqlalchemy import Connection, insert, select

from torchyard.domain.project import Project
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import projects as table

DEFAULT = "default"


def ensure_default(c: Connection, now: datetime) -> None:
    """Make the default project if it is not there."""
    if find(c, DEFAULT) is None:
        c.execute(insert(table).values(name=DEFAULT, created_at=to_text(now)))


def find(c: Connection, name: str) -> Project | None:
    """One project by name."""
    return next((p for p in listing(c) if p.name == name), None)


def listing(c: Connection) -> tuple[Project, ...]:
    """All projects by id."""
    rows = c.execute(select(table).order_by(table.c.id))
    return tuple(Project(id=str(r.id), name=r.name, created_at=from_text(r.created_at)) for r in rows)
