"""What stands behind the `?`: filters, sorting, times. As lenient as the clients that exist need it. Knows no route."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeVar

from fastapi import Query

from torchyard.domain.errors import Invalid
from torchyard.domain.quantities import parse_duration

_FILTER = re.compile(r"^\s*([A-Za-z0-9]+)\s*(==|!=|<=|>=|=@|!@|=\^|=\$)(.*)$", re.DOTALL)
MAX_FILTERS = 20

FilterBy = Annotated[list[str], Query(alias="filterBy", default_factory=list)]
SortBy = Annotated[str, Query(alias="sortBy", max_length=64)]
SortOrder = Annotated[Literal["asc", "desc"], Query(alias="sortOrder")]
Search = Annotated[str | None, Query(max_length=255)]

Value = str | bool | int | datetime | None
"""What a field holds that filters and sorting know."""
T = TypeVar("T")
Ordered = TypeVar("Ordered", float, datetime)


def split_list(values: Iterable[str]) -> tuple[str, ...]:
    """List parameters come joined with commas, repeated, or both."""
    return tuple(part for value in values for part in value.split(",") if part.strip())


def parse_filter(text: str) -> tuple[str, str, str]:
    """`name==ddp` as (field, operator, value)."""
    match = _FILTER.match(text)
    if match is None:
        raise Invalid(
            f"filterBy: {text[:80]!r} is no filter",
            "write FIELD OP VALUE with one of == != <= >= =@ (contains) !@ =^ (starts) =$ (ends): `phase==Running`",
        )
    return match[1], match[2], match[3].strip()


def parse_filters(values: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """All filters of a query."""
    filters = tuple(parse_filter(part) for part in split_list(values))
    if len(filters) > MAX_FILTERS:
        raise Invalid(f"filterBy: {len(filters)} filters are too many", f"send at most {MAX_FILTERS}")
    return filters


def kept(values: Mapping[str, Value], filters: Iterable[tuple[str, str, str]]) -> bool:
    """A thing with these values passes all filters. Raises Invalid for fields and operators that there are not."""
    return all(_passes(values, *one) for one in filters)


def _passes(values: Mapping[str, Value], name: str, op: str, wanted: str) -> bool:
    if name not in values:
        raise Invalid(f"filterBy: there is no field {name[:40]!r}", f"fields: {', '.join(values)}")
    found = values[name]
    if found is None:
        return op in ("!=", "!@") if wanted else op == "=="
    if isinstance(found, bool):
        found, wanted = str(found).lower(), wanted.lower()
    if isinstance(found, datetime):
        if op not in ("==", "!=", "<=", ">="):
            raise Invalid(f"filterBy: {name} is a time", "use one of == != <= >=")
        return _compare(op, found, parse_moment(wanted))
    if isinstance(found, int):
        if op not in ("==", "!=", "<=", ">="):
            raise Invalid(f"filterBy: {name} is a number", "use one of == != <= >=")
        return _compare(op, found, _number(name, wanted))
    return _compare_text(op, found, wanted)


def found_in(
    things: Iterable[T], fields: Callable[[T], Mapping[str, Value]], filter_by: Iterable[str], search: str | None
) -> list[T]:
    """Those that pass all filters and whose name holds the text searched for."""
    filters = parse_filters(filter_by)
    found = [thing for thing in things if kept(fields(thing), filters)]
    return [one for one in found if search is None or search.lower() in str(fields(one)["name"]).lower()]


def arranged(
    things: Iterable[T], fields: Callable[[T], Mapping[str, Value]], names: Sequence[str], by: str, order: str
) -> list[T]:
    """Things in the order of one field; those that have nothing there come first. Raises Invalid for no such field."""
    if by not in names:
        raise Invalid(f"sortBy: there is no field {by[:40]!r}", f"fields: {', '.join(names)}")
    return sorted(things, key=lambda thing: _rank(fields(thing)[by]), reverse=order == "desc")


def _rank(value: Value) -> tuple[bool, str | bool | int | datetime]:
    return (False, "") if value is None else (True, value)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Invalid(f"filterBy: {name} is a number, and {text[:40]!r} is none", f"write `{name}>=2`") from None


def _compare(op: str, a: Ordered, b: Ordered) -> bool:
    return {"==": a == b, "!=": a != b, "<=": a <= b, ">=": a >= b}[op]


def _compare_text(op: str, text: str, wanted: str) -> bool:
    match op:
        case "==":
            return text == wanted
        case "!=":
            return text != wanted
        case "<=":
            return text <= wanted
        case ">=":
            return text >= wanted
        case "=@":
            return wanted in text
        case "!@":
            return wanted not in text
        case "=^":
            return text.startswith(wanted)
        case _:
            return text.endswith(wanted)


def parse_moment(text: str) -> datetime:
    """An ISO 8601 time. Without a zone it is UTC; a `+` that a URL turned into a space is put back."""
    mended = re.sub(r" (\d\d:?\d\d)$", r"+\1", text.strip())
    try:
        at = datetime.fromisoformat(mended)
    except ValueError:
        raise Invalid(
            f"{text[:40]!r} is not a time", "write it as 2026-01-31T12:00:00Z or 2026-01-31T12:00:00+02:00"
        ) from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else _utc(at, text)


def parse_since(text: str, now: datetime) -> datetime:
    """Seconds or a duration before now (`300`, `5m`), or a time."""
    if re.match(r"^\d+(\.\d+)?(ms|s|m|h|d|$)", text.strip()):
        try:
            return now - timedelta(seconds=parse_duration(text))
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        return parse_moment(text)
    except Invalid as problem:
        raise Invalid(problem.message, "write 300 (seconds), 5m, 2h, or a time such as 2026-01-31T12:00:00Z") from None


def _utc(at: datetime, text: str) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise Invalid(f"{text[:40]!r} is out of range", "write a time of this century") from None
