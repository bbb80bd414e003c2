"""Projects. `default` is there from the first start."""

from datetime import datetime

from sqlalchemy import Connection, Row, delete, select, update
from sqlalchemy import insert as sql_insert
from sqlalchemy.exc import IntegrityError

from torchyard.domain.errors import Conflict
from torchyard.domain.project import Project, Quota
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import projects as table

DEFAULT = "default"


def ensure_default(c: Connection, now: datetime) -> None:
    """Make the default project if it is not there."""
    if find(c, DEFAULT) is None:
        insert(c, Project(id="", name=DEFAULT, namespace=DEFAULT, created_at=now))


def insert(c: Connection, project: Project) -> str:
    """Remember a new project; the answer is its id. Raises Conflict when its name or namespace is taken."""
    try:
        made = c.execute(sql_insert(table).values(_values(project)))
    except IntegrityError as problem:
        taken = f"there is a project {project.name} or one with the namespace {project.namespace} already"
        raise Conflict(taken, "choose another name") from problem
    assert made.inserted_primary_key is not None
    return str(made.inserted_primary_key[0])


def save(c: Connection, project: Project) -> None:
    """Write what is known of a project now."""
    c.execute(update(table).where(table.c.id == int(project.id)).values(_values(project)))


def find(c: Connection, name: str) -> Project | None:
    """One project by name."""
    return next((p for p in listing(c) if p.name == name), None)


def fetch(c: Connection, project_id: str) -> Project | None:
    """One project by id."""
    return next((p for p in listing(c) if p.id == project_id), None)


def listing(c: Connection) -> tuple[Project, ...]:
    """All projects by id."""
    return tuple(_project(row) for row in c.execute(select(table).order_by(table.c.id)))


def remove(c: Connection, project_id: str) -> None:
    """Forget a project. Its id is not given again."""
    c.execute(delete(table).where(table.c.id == int(project_id)))


def _values(p: Project) -> dict[str, object]:
    return {
        "name": p.name,
        "created_at": to_text(p.created_at),
        "department_id": int(p.department_id),
        "description": p.description,
        "namespace": p.namespace,
        "deserved": p.quota.deserved,
        "device_limit": p.quota.limit,
    }


def _project(row: Row[tuple[object, ...]]) -> Project:
    found = row._mapping
    return Project(
        id=str(found["id"]),
        name=found["name"],
        created_at=from_text(found["created_at"]),
        department_id=str(found["department_id"]),
        description=found["description"],
        namespace=found["namespace"],
        quota=Quota(found["deserved"], found["device_limit"]),
    )
