"""Access keys: client ids, and what their secrets were turned into."""

from dataclasses import asdict
from datetime import datetime

from sqlalchemy import Connection, Row, delete, select, update
from sqlalchemy import insert as sql_insert
from sqlalchemy.exc import IntegrityError

from torchyard.domain.errors import Conflict
from torchyard.domain.user import AccessKey, KeyKind
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import access_keys as table


def insert(c: Connection, key: AccessKey) -> None:
    """Remember a new key. Raises Conflict when its user has one of this name."""
    try:
        c.execute(sql_insert(table).values(_row(key)))
    except IntegrityError as problem:
        raise Conflict(f"there is a key {key.name} already", "choose another name, or delete that one") from problem


def save(c: Connection, key: AccessKey) -> None:
    """Write what is known of a key now."""
    c.execute(update(table).where(table.c.id == key.id).values(_row(key)))


def fetch(c: Connection, key_id: str) -> AccessKey | None:
    """One key by id."""
    row = c.execute(select(table).where(table.c.id == key_id)).first()
    return None if row is None else _key(row)


def of_client(c: Connection, client_id: str) -> AccessKey | None:
    """One key by client id."""
    row = c.execute(select(table).where(table.c.client_id == client_id)).first()
    return None if row is None else _key(row)


def listing(c: Connection, kind: KeyKind, user_id: str | None = None) -> tuple[AccessKey, ...]:
    """All keys of a kind, or those of one user, by name."""
    query = select(table).where(table.c.kind == kind.value).order_by(table.c.name, table.c.id)
    if user_id is not None:
        query = query.where(table.c.user_id == user_id)
    return tuple(_key(row) for row in c.execute(query))


def used(c: Connection, key_id: str, at: datetime) -> None:
    """It opened the door now."""
    c.execute(update(table).where(table.c.id == key_id).values(last_used=to_text(at)))


def remove(c: Connection, key_id: str) -> None:
    """Forget a key."""
    c.execute(delete(table).where(table.c.id == key_id))


def _row(key: AccessKey) -> dict[str, object]:
    moments = {name: to_text(getattr(key, name)) for name in ("created_at", "updated_at", "last_used")}
    return asdict(key) | moments | {"enabled": int(key.enabled), "kind": key.kind.value}


def _key(row: Row[tuple[object, ...]]) -> AccessKey:
    found = row._mapping
    return AccessKey(
        id=found["id"],
        client_id=found["client_id"],
        name=found["name"],
        kind=KeyKind(found["kind"]),
        user_id=found["user_id"],
        secret=found["secret"],
        enabled=bool(found["enabled"]),
        generation=found["generation"],
        created_at=from_text(found["created_at"]),
        created_by=found["created_by"],
        updated_at=from_text(found["updated_at"]),
        last_used=from_text(found["last_used"]) if found["last_used"] else None,
    )
