"""Claims of projects."""

from pydantic import TypeAdapter
from sqlalchemy import Connection, delete, select, update
from sqlalchemy import insert as sql_insert
from sqlalchemy.exc import IntegrityError

from torchyard.domain.asset import Claim
from torchyard.domain.errors import Conflict
from torchyard.store.tables import claims as table

_DOCUMENT = TypeAdapter(Claim)


def insert(c: Connection, claim: Claim) -> None:
    """Remember a new claim. Raises Conflict when its name is taken."""
    text = _DOCUMENT.dump_json(claim, by_alias=True).decode()
    try:
        c.execute(
            sql_insert(table).values(
                id=claim.id, project=claim.project, name=claim.name, claim_name=claim.claim_name, document=text
            )
        )
    except IntegrityError as problem:
        raise taken(claim) from problem


def save(c: Connection, claim: Claim) -> None:
    """Write what is known of a claim now. Raises Conflict when its new name is taken."""
    text = _DOCUMENT.dump_json(claim, by_alias=True).decode()
    try:
        c.execute(update(table).where(table.c.id == claim.id).values(name=claim.name, document=text))
    except IntegrityError as problem:
        raise taken(claim) from problem


def taken(claim: Claim) -> Conflict:
    """The sentence for a name that another claim has."""
    return Conflict(f"there is a claim {claim.name!r} in project {claim.project} already", "choose another name")


def fetch(c: Connection, claim_id: str) -> Claim | None:
    """One claim by id."""
    row = c.execute(select(table.c.document).where(table.c.id == claim_id)).first()
    return None if row is None else _DOCUMENT.validate_json(row.document)


def listing(c: Connection, project: str | None = None) -> tuple[Claim, ...]:
    """All claims, or those of one project, by name."""
    query = select(table.c.document).order_by(table.c.project, table.c.name)
    if project is not None:
        query = query.where(table.c.project == project)
    return tuple(_DOCUMENT.validate_json(row.document) for row in c.execute(query))


def remove(c: Connection, claim_id: str) -> None:
    """Forget a claim."""
    c.execute(delete(table).where(table.c.id == claim_id))
