"""Users. The owner of the server is there from the first start."""

import uuid
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import Connection, Row, delete, func, select, update
from sqlalchemy import insert as sql_insert
from sqlalchemy.exc import IntegrityError

from torchyard.domain.errors import Conflict
from torchyard.domain.user import User
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import users as table


def ensure_owner(c: Connection, username: str, now: datetime) -> User:
    """Remember the OS user who owns the server; a changed name of theirs is taken over unless it is taken."""
    owner = next((user for user in listing(c) if user.owner), None)
    if owner is None:
        owner = User(
            id=str(uuid.uuid4()), username=username, created_at=now, updated_at=now, created_by=username, owner=True
        )
        insert(c, owner)
    elif owner.username != username and named(c, username) is None:
        c.execute(update(table).where(table.c.id == owner.id).values(username=username))
    return owner


def insert(c: Connection, user: User) -> None:
    """Remember a new user. Raises Conflict when the name is taken."""
    try:
        c.execute(sql_insert(table).values(_row(user)))
    except IntegrityError as problem:
        raise Conflict(f"there is a user {user.username} already", "choose another address") from problem


def save(c: Connection, user: User) -> None:
    """Write what is known of a user now."""
    c.execute(update(table).where(table.c.id == user.id).values(_row(user)))


def fetch(c: Connection, user_id: str) -> User | None:
    """One user by id."""
    row = c.execute(select(table).where(table.c.id == user_id)).first()
    return None if row is None else _user(row)


def named(c: Connection, username: str) -> User | None:
    """One user by name; case does not matter."""
    row = c.execute(select(table).where(func.lower(table.c.username) == username.lower())).first()
    return None if row is None else _user(row)


def owner_of(c: Connection) -> User | None:
    """The OS user who owns the server."""
    row = c.execute(select(table).where(table.c.owner == 1)).first()
    return None if row is None else _user(row)


def listing(c: Connection) -> tuple[User, ...]:
    """All users by name."""
    return tuple(_user(row) for row in c.execute(select(table).order_by(table.c.username)))


def logged_in(c: Connection, user_id: str, at: datetime) -> None:
    """They came in now."""
    c.execute(update(table).where(table.c.id == user_id).values(last_login=to_text(at)))


def remove(c: Connection, user_id: str) -> None:
    """Forget a user with all their keys and rules."""
    c.execute(delete(table).where(table.c.id == user_id))


def _row(user: User) -> dict[str, object]:
    moments = {name: to_text(getattr(user, name)) for name in ("created_at", "updated_at", "last_login")}
    flags = {name: int(getattr(user, name)) for name in ("owner", "enabled", "temporary")}
    return asdict(user) | moments | flags


def _user(row: Row[tuple[object, ...]]) -> User:
    found = row._mapping
    return User(
        id=found["id"],
        username=found["username"],
        owner=bool(found["owner"]),
        enabled=bool(found["enabled"]),
        password=found["password"],
        temporary=bool(found["temporary"]),
        generation=found["generation"],
        created_at=from_text(found["created_at"]),
        created_by=found["created_by"],
        updated_at=from_text(found["updated_at"]),
        last_login=from_text(found["last_login"]) if found["last_login"] else None,
    )
