"""Values out of JSON in the shape that is needed; what has another shape is as if it were missing. Knows no names."""

from __future__ import annotations


def words(value: object) -> list[str]:
    """A list of strings."""
    return [str(word) for word in value] if isinstance(value, list) else []


def table(value: object) -> dict[str, object]:
    """An object."""
    return value if isinstance(value, dict) else {}


def texts(value: object) -> dict[str, str]:
    """An object whose values are strings."""
    return {str(name): str(text) for name, text in table(value).items()}


def number(value: object, default: float) -> float:
    """A number."""
    return float(value) if isinstance(value, (int, float)) else default
