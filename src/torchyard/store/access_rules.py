"""Access rules: which user has which role where, by ids. Knows nothing of what a role allows."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy import insert as sql_insert
from sqlalchemy.exc import IntegrityError

from torchyard.domain.errors import Conflict
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import access_rules as table

OWNERS_RULE = 0
"""Number of the rule that says what the server's owner may do. It is shown, and in no store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """A role of a user at a scope."""

    id: int = 0
    user_id: str
    role_id: int
    scope_type: str
    scope_id: str
    created_at: datetime
    created_by: str


def insert(c: Connection, rule: AccessRule) -> int:
    """Remember a rule; the answer is its id. Raises Conflict when it is there."""
    values = {
        "user_id": rule.user_id,
        "role_id": rule.role_id,
        "scope_type": rule.scope_type,
        "scope_id": rule.scope_id,
        "created_at": to_text(rule.created_at),
        "created_by": rule.created_by,
    }
    try:
        done = c.execute(sql_insert(table).values(values))
    except IntegrityError as problem:
        raise Conflict("this user has this role at this scope already", "nothing needs to be done") from problem
    assert done.inserted_primary_key is not None
    return int(done.inserted_primary_key[0])


def listing(c: Connection, user_id: str | None = None) -> tuple[AccessRule, ...]:
    """All rules, or those of one user, by id."""
    query = select(table).order_by(table.c.id)
    if user_id is not None:
        query = query.where(table.c.user_id == user_id)
    return tuple(
        AccessRule(
            id=row.id,
            user_id=row.user_id,
            role_id=row.role_id,
            scope_type=row.scope_type,
            scope_id=row.scope_id,
            created_at=from_text(row.created_at),
            created_by=row.created_by,
        )
        for row in c.execute(query)
    )


def remove(c: Connection, rule_id: int) -> None:
    """Forget a rule."""
    c.execute(delete(table).where(table.c.id == rule_id))


def remove_scope(c: Connection, scope_type: str, scope_id: str) -> None:
    """Forget all rules at a scope that is no more."""
    c.execute(delete(table).where(table.c.scope_type == scope_type, table.c.scope_id == scope_id))
