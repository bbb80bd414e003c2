"""Departments. `default` is there since the table is."""

from sqlalchemy import Connection, Row, delete, select, update
from sqlalchemy import insert as sql_insert
from sqlalchemy.exc import IntegrityError

from torchyard.domain.errors import Conflict
from torchyard.domain.project import Department, Quota
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import departments as table


def insert(c: Connection, department: Department) -> str:
    """Remember a new department; the answer is its id. Raises Conflict when its name is taken."""
    try:
        made = c.execute(sql_insert(table).values(_values(department)))
    except IntegrityError as problem:
        raise Conflict(f"there is a department {department.name} already", "choose another name") from problem
    assert made.inserted_primary_key is not None
    return str(made.inserted_primary_key[0])


def save(c: Connection, department: Department) -> None:
    """Write what is known of a department now."""
    c.execute(update(table).where(table.c.id == int(department.id)).values(_values(department)))


def fetch(c: Connection, department_id: str) -> Department | None:
    """One department by id."""
    return next((d for d in listing(c) if d.id == department_id), None)


def listing(c: Connection) -> tuple[Department, ...]:
    """All departments by id."""
    return tuple(_department(row) for row in c.execute(select(table).order_by(table.c.id)))


def remove(c: Connection, department_id: str) -> None:
    """Forget a department that has no projects. Its id is not given again."""
    c.execute(delete(table).where(table.c.id == int(department_id)))


def _values(d: Department) -> dict[str, object]:
    return {
        "name": d.name,
        "created_at": to_text(d.created_at),
        "description": d.description,
        "deserved": d.quota.deserved,
        "device_limit": d.quota.limit,
    }


def _department(row: Row[tuple[object, ...]]) -> Department:
    found = row._mapping
    return Department(
        id=str(found["id"]),
        name=found["name"],
        created_at=from_text(found["created_at"]),
        description=found["description"],
        quota=Quota(found["deserved"], found["device_limit"]),
    )
