"""Workloads: insert, find, page, and the guarded write under a lease."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Connection, Row, Text, and_, delete, func, not_, or_, select, update
from sqlalchemy import insert as sql_insert
from sqlalchemy.exc import IntegrityError

from torchyard.domain.errors import Conflict, Invalid, Unavailable
from torchyard.domain.workload import Desired, Progress, Workload
from torchyard.store.moments import to_text
from torchyard.store.tables import workloads as table

_DOCUMENT = TypeAdapter(Workload)
_PROGRESS = TypeAdapter(Progress)
MAX_LIMIT = 500

log = logging.getLogger("torchyard.store")

_COLUMNS: dict[str, ColumnElement[str]] = {
    "id": table.c.id,
    "name": table.c.name,
    "type": table.c.kind,
    "projectName": table.c.project,
    "clusterName": table.c.cluster,
    "distributedFramework": table.c.framework,
    "phase": table.c.phase,
    "phaseUpdatedAt": table.c.phase_at,
    "createdAt": table.c.created_at,
    "submittedBy": table.c.created_by,
    "completedAt": table.c.completed_at,
    "deletedAt": table.c.deleted_at,
}
FIELDS = tuple(sorted(_COLUMNS))
"""Names that a query may filter and sort by."""


@dataclass(frozen=True, slots=True)
class Filter:
    """`field op value`; ops are Run:ai's: == != <= >= =@ !@ =^ =$."""

    field: str
    op: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadQuery:
    """Which workloads, in which order."""

    offset: int = 0
    limit: int = 50
    sort_by: str = "createdAt"
    descending: bool = True
    filters: tuple[Filter, ...] = ()
    search: str | None = None
    deleted: bool = False
    project: str | None = None
    projects: frozenset[str] | None = None
    """Names of projects that may be seen; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some rows, how many there are in all, and the offset of the next page (None: that was the last)."""

    rows: tuple[Workload, ...]
    total: int
    next: int | None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one workload. Tokens grow: a late holder of an old one is refused."""

    workload_id: str
    holder: str
    token: int


def _load(row: Row[str, str]) -> Workload:
    """Raises Unavailable for a record that this version cannot read."""
    try:
        return _DOCUMENT.validate_json(row.document)
    except ValidationError as problem:
        raise Unavailable(
            f"the record of workload {row.id} cannot be read: {problem.errors()[0]['msg']}",
            "see server.log in the data folder; a newer torchyard may have written it",
        ) from problem


def _readable(rows: Iterable[Row[str, str]]) -> tuple[Workload, ...]:
    """All but those that cannot be read: one of them must not hide the others."""
    found = []
    for row in rows:
        try:
            found.append(_load(row))
        except Unavailable as problem:
            log.error("%s", problem)
    return tuple(found)


def _values(w: Workload) -> dict[str, object]:
    gone = w.desired is Desired.DELETED or w.deleted_at is not None
    return {
        "name": w.name,
        "live_name": None if gone else w.name,
        "project": w.project,
        "kind": w.kind.value,
        "cluster": w.cluster,
        "framework": w.submission.spec.distributed_framework,
        "phase": w.phase.value,
        "phase_at": to_text(w.phase_at),
        "desired": w.desired.value,
        "settled": int(w.settled),
        "created_at": to_text(w.created_at),
        "created_by": w.created_by,
        "completed_at": to_text(w.completed_at),
        "deleted_at": to_text(w.deleted_at),
        "code": w.submission.torchyard.code,
        "document": _DOCUMENT.dump_json(w, by_alias=True, exclude_defaults=True).decode(),
    }


def insert(c: Connection, w: Workload) -> None:
    """Remember a new workload. Raises Conflict when the name is taken in its project."""
    try:
        c.execute(sql_insert(table).values(id=w.id, lease_token=0, **_values(w)))
    except IntegrityError as problem:
        raise taken(w.name, w.project) from problem


def taken(name: str, project: str) -> Conflict:
    """Why a second workload of this name cannot be."""
    return Conflict(
        f"there is a workload {name!r} in project {project} already",
        f"choose another name, or delete it first: torchyard delete {name}",
    )


def fetch(c: Connection, workload_id: str) -> Workload | None:
    """One workload by id."""
    row = c.execute(select(table.c.id, table.c.document).where(table.c.id == workload_id)).first()
    return None if row is None else _load(row)


def find(c: Connection, project: str, name: str) -> Workload | None:
    """One workload by name, if it was not deleted."""
    where = and_(table.c.project == project, table.c.live_name == name)
    row = c.execute(select(table.c.id, table.c.document).where(where)).first()
    return None if row is None else _load(row)


def live(c: Connection) -> tuple[Workload, ...]:
    """All for which something is left to do, the oldest first."""
    query = select(table.c.id, table.c.document).where(table.c.settled == 0).order_by(table.c.created_at)
    return _readable(c.execute(query))


def names(c: Connection, project: str) -> tuple[str, ...]:
    """Of all workloads of a project that are not gone, those that are being deleted included."""
    query = select(table.c.name).where(table.c.project == project, table.c.deleted_at.is_(None)).order_by(table.c.name)
    return tuple(c.execute(query).scalars())


def next_name(c: Connection, project: str, prefix: str) -> str:
    """`prefix-7`: one more than the highest number that was ever used with this prefix in the project."""
    names = c.execute(
        select(table.c.name).where(table.c.project == project, table.c.name.startswith(f"{prefix}-", autoescape=True))
    )
    numbers = [int(m[1]) for (name,) in names if (m := re.fullmatch(re.escape(prefix) + r"-(\d+)", name))]
    return f"{prefix}-{max(numbers, default=0) + 1}"


def lease(c: Connection, workload_id: str, holder: str, now: datetime, seconds: float) -> Lease | None:
    """Take or renew the lease; None while another holder has it."""
    row = c.execute(
        select(table.c.lease_holder, table.c.lease_token, table.c.lease_until).where(table.c.id == workload_id)
    ).first()
    if row is None:
        return None
    until = to_text(now + timedelta(seconds=seconds))
    if row.lease_holder == holder:
        token = row.lease_token
    elif row.lease_holder is None or row.lease_until <= to_text(now):
        token = row.lease_token + 1
    else:
        return None
    c.execute(
        update(table).where(table.c.id == workload_id).values(lease_holder=holder, lease_token=token, lease_until=until)
    )
    return Lease(workload_id, holder, token)


def save(c: Connection, w: Workload, mine: Lease, now: datetime) -> bool:
    """The guarded write. False when somebody else has the lease by now; nothing was written then."""
    where = and_(table.c.id == w.id, table.c.lease_token == mine.token, table.c.lease_until > to_text(now))
    return c.execute(update(table).where(where).values(**_values(w))).rowcount == 1


def release_others(c: Connection, holder: str) -> None:
    """Free the leases of every holder but this one: for the server that has just become the only one."""
    c.execute(update(table).where(table.c.lease_holder != holder).values(lease_holder=None, lease_until=None))


def save_progress(c: Connection, workload_id: str, progress: Progress) -> None:
    """Remember how far it is; no lease, the last word counts."""
    text = _PROGRESS.dump_json(progress, exclude_defaults=True).decode()
    c.execute(update(table).where(table.c.id == workload_id).values(progress=text))


def progress(c: Connection, workload_ids: Sequence[str]) -> dict[str, Progress]:
    """The last known progress of each that has any."""
    where = and_(table.c.id.in_(workload_ids), table.c.progress.is_not(None))
    rows = c.execute(select(table.c.id, table.c.progress).where(where))
    return {row.id: _PROGRESS.validate_json(row.progress) for row in rows}


def page(c: Connection, query: WorkloadQuery) -> Page:
    """Some workloads. Raises Invalid for fields and operators that there are not."""
    where = and_(*_conditions(query))
    column = _column(query.sort_by, "sortBy")
    order = column.desc() if query.descending else column.asc()
    limit = max(1, min(query.limit, MAX_LIMIT))
    rows = c.execute(
        select(table.c.id, table.c.document)
        .where(where)
        .order_by(order, table.c.id)
        .offset(query.offset)
        .limit(limit + 1)
    ).all()
    total = c.execute(select(func.count()).select_from(table).where(where)).scalar_one()
    more = len(rows) > limit
    found = _readable(rows[:limit])
    return Page(rows=found, total=total, next=query.offset + limit if more else None)


def _column(field: str, where: str) -> ColumnElement[str]:
    if field not in _COLUMNS:
        raise Invalid(f"{where}: there is no field {field[:40]!r}", f"fields: {', '.join(FIELDS)}")
    return _COLUMNS[field]


def _conditions(query: WorkloadQuery) -> list[ColumnElement[bool]]:
    gone = or_(table.c.deleted_at.is_not(None), table.c.desired == Desired.DELETED.value)
    conditions = [table.c.deleted_at.is_not(None) if query.deleted else not_(gone)]
    if query.project is not None:
        conditions.append(table.c.project == query.project)
    if query.projects is not None:
        conditions.append(table.c.project.in_(sorted(query.projects)))
    if query.search:
        conditions.append(table.c.name.contains(query.search, autoescape=True))
    conditions.extend(_condition(f) for f in query.filters)
    return conditions


def _condition(f: Filter) -> ColumnElement[bool]:
    column = _column(f.field, "filterBy")
    text = func.coalesce(column, "").cast(Text)
    match f.op:
        case "==":
            return func.lower(text) == f.value.lower()
        case "!=":
            return func.lower(text) != f.value.lower()
        case "<=":
            return column <= f.value
        case ">=":
            return column >= f.value
        case "=@":
            return text.contains(f.value, autoescape=True)
        case "!@":
            return not_(text.contains(f.value, autoescape=True))
        case "=^":
            return text.startswith(f.value, autoescape=True)
        case "=$":
            return text.endswith(f.value, autoescape=True)
        case _:
            raise Invalid(f"filterBy: there is no operator {f.op!r}", "operators: == != <= >= =@ !@ =^ =$")


def ended_before(c: Connection, moment: datetime) -> tuple[Workload, ...]:
    """Settled workloads that ended or were deleted before this moment, the oldest first."""
    text = to_text(moment)
    ended = func.coalesce(table.c.deleted_at, table.c.completed_at)
    query = select(table.c.id, table.c.document).where(table.c.settled == 1, ended < text)
    return _readable(c.execute(query.order_by(table.c.created_at)))


def codes(c: Connection, without: set[str]) -> set[str]:
    """Content hashes that workloads name, but for these workloads."""
    rows = c.execute(select(table.c.id, table.c.code).where(table.c.code.is_not(None), table.c.deleted_at.is_(None)))
    return {row.code for row in rows if row.id not in without}


def remove(c: Connection, workload_id: str) -> None:
    """Forget a workload, with its attempts, events and sealed environment."""
    c.execute(delete(table).where(table.c.id == workload_id))


def remove_deleted(c: Connection, project: str) -> None:
    """Forget what is still remembered of deleted workloads of a project."""
    c.execute(delete(table).where(table.c.project == project, table.c.deleted_at.is_not(None)))
