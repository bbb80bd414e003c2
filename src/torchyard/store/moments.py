"""Moments as the database keeps them: ISO 8601, UTC, microseconds, always the same length."""

from datetime import UTC, datetime
from typing import overload


@overload
def to_text(moment: datetime) -> str: ...
@overload
def to_text(moment: None) -> None: ...
def to_text(moment: datetime | None) -> str | None:
    """Text whose order is the order of time."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """The moment of a text that to_text made."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
