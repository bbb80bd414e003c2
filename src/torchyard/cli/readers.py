"""How the values of submit's flags are read: numbers, durations, `key=value,...`.

Pure; what cannot be read raises ValueError with a sentence.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torchyard.domain.quantities import parse_duration, parse_size

Read = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A key of a compound value: the dotted field it fills. `bare`: what the key means without a value."""

    field: str
    read: Read = str
    bare: Any = None


def compound(parts: Mapping[str, Part | str], **fixed: Any) -> Read:
    """Reads `claimname=C,path=/p,ro`. `fixed` are fields that each such value has."""
    known = {key: Part(part) if isinstance(part, str) else part for key, part in parts.items()}

    def read(text: str) -> dict[str, Any]:
        found: dict[str, Any] = dict(fixed)
        for piece in filter(None, text.split(",")):
            key, equals, value = piece.partition("=")
            part = known.get(key.lower().replace("_", "-"))
            if part is None:
                raise ValueError(_unknown(key, known))
            if not equals and part.bare is None:
                raise ValueError(f"{key} needs a value: {key}=...")
            put(found, part.field, _named(key, part.read, value) if equals else part.bare)
        return found

    return read


def pair(name: str, value: str) -> Read:
    """Reads `NAME=VALUE` into two fields."""

    def read(text: str) -> dict[str, Any]:
        key, equals, rest = text.partition("=")
        if not key or not equals:
            raise ValueError(f"{text[:60]!r} is not NAME=VALUE")
        return {name: key, value: rest}

    return read


def from_secret(text: str) -> dict[str, Any]:
    """Reads `VAR=SECRET,key=KEY`."""
    named = pair("name", "secret")(text)
    name, _, key = named["secret"].partition(",key=")
    return {"name": named["name"], "secret": {"name": name, "key": key or named["name"]}}


def from_field(text: str) -> dict[str, Any]:
    """Reads `VAR=metadata.name`."""
    named = pair("name", "path")(text)
    return {"name": named["name"], "podFieldRef": {"path": named["path"]}}


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a whole number") from None


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a number") from None


def size(text: str) -> str:
    """A size, kept as it was written."""
    parse_size(text)
    return text


def duration(text: str) -> str:
    """A duration, kept as it was written."""
    parse_duration(text)
    return text


def seconds(text: str) -> int:
    """Whole seconds of a duration."""
    return round(parse_duration(text))


def words(text: str) -> list[str]:
    """Words with commas between them."""
    return [word for word in text.split(",") if word]


def one_of(*choices: str) -> Read:
    """One of a few words, whatever their case."""

    def read(text: str) -> str:
        for choice in choices:
            if choice.lower() == text.lower():
                return choice
        raise ValueError(f"{text[:40]!r} is none of {', '.join(choices)}")

    return read


def notify(text: str) -> dict[str, str]:
    """A webhook where it is a URL, else a command."""
    return {"webhook" if text.startswith(("http://", "https://")) else "command": text}


def put(target: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted field; `name[]` appends to a list."""
    *folders, last = path.split(".")
    for folder in folders:
        target = target.setdefault(folder, {})
    if last.endswith("[]"):
        target.setdefault(last[:-2], []).append(value)
    else:
        target[last] = value


def _named(key: str, read: Read, value: str) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _unknown(key: str, known: Mapping[str, Part]) -> str:
    near = difflib.get_close_matches(key.lower(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"{key[:40]!r} is not known here; {hint}"
