"""How answers look: tables, JSON, YAML, names, ages. Knows no command and no server."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, TypeVar

import click

FORMATS = ("table", "wide", "json", "yaml", "name")
Row = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])

_COLOURS = {"Running": "32", "Completed": "32", "Failed": "31", "Degraded": "33", "Pending": "33", "Stopped": "2"}
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*")
_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_NO_TEXT = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. Wide ones are shown by `-o wide` only."""

    title: str
    cell: Callable[[Row], str]
    wide: bool = False


def output_options(function: Function) -> Function:
    """`-o FORMAT`, and --json and --yaml for short."""
    function = click.option("--yaml", "output", flag_value="yaml", help="The same as -o yaml.")(function)
    function = click.option("--json", "output", flag_value="json", help="The same as -o json.")(function)
    return click.option(
        "-o",
        "--output",
        "output",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to show it.",
    )(function)


def show_rows(rows: Sequence[Row], columns: Sequence[Column], output: str, *, name: Callable[[Row], str]) -> None:
    """A list in the format asked for."""
    match output:
        case "json" | "yaml":
            write(as_text(list(rows), output))
        case "name":
            write("".join(name(row) + "\n" for row in rows))
        case _:
            write(table(rows, [c for c in columns if output == "wide" or not c.wide], colour=coloured(sys.stdout)))


def as_text(value: Any, output: str) -> str:
    """JSON or YAML."""
    if output == "json":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return "".join(f"{line}\n" for line in _yaml(value)) if isinstance(value, dict | list) else f"{_scalar(value)}\n"


def _yaml(value: Any) -> list[str]:
    """Lines of block style. Written here, since importing a library takes longer than most commands."""
    if not value or not isinstance(value, dict | list):
        return [_scalar(value)]
    lines: list[str] = []
    for key, inner in value.items() if isinstance(value, dict) else [(None, item) for item in value]:
        head = "-" if key is None else f"{_scalar(str(key))}:"
        below = _yaml(inner)
        if not inner or not isinstance(inner, dict | list):
            lines.append(f"{head} {below[0]}")
        elif key is None:
            lines += [f"- {below[0]}", *(f"  {line}" for line in below[1:])]
        else:
            indent = "  " if isinstance(inner, dict) else ""
            lines += [head, *(indent + line for line in below)]
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _NO_TEXT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def table(rows: Sequence[Row], columns: Sequence[Column], *, colour: bool = False) -> str:
    """Aligned columns under their titles."""
    cells = [[_one_line(column.cell(row)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip([c.title for c in columns], *cells, strict=True)]
    lines = ["  ".join(c.title.ljust(width) for c, width in zip(columns, widths, strict=True)).rstrip()]
    for line in cells:
        padded = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
        painted = [paint(text, _COLOURS.get(text.strip(), "")) if colour else text for text in padded]
        lines.append("  ".join(painted).rstrip())
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return _UNPRINTABLE.sub("?", " ".join(text.splitlines()))


def fields(pairs: Iterable[tuple[str, str]]) -> str:
    """`Name: value` lines, aligned; empty values are left out."""
    known = [(name, _one_line(value)) for name, value in pairs if value]
    width = max((len(name) for name, _ in known), default=0) + 1
    return "".join(f"{name + ':':<{width}}  {value}\n" for name, value in known)


def write(text: str) -> None:
    """To stdout."""
    sys.stdout.write(text)


def note(text: str) -> None:
    """A remark beside the answer, to stderr."""
    sys.stderr.write(text.rstrip("\n") + "\n")


def paint(text: str, code: str) -> str:
    """Text in a colour of the terminal."""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def coloured(stream: IO[str]) -> bool:
    """Colours are for terminals whose user does not mind."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def moment_of(text: object) -> datetime | None:
    """The time that the API wrote."""
    if not isinstance(text, str) or not text:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def age(text: object, now: datetime | None = None) -> str:
    """How long ago that was: `5m`, `2h`."""
    then = moment_of(text)
    if then is None:
        return "-"
    return short_duration(((now or datetime.now(UTC)) - then).total_seconds())


def short_duration(seconds: float) -> str:
    """The largest unit with its number, two of them where that is coarse: `45s`, `2m10s`, `3h`, `5d`."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 600:
        return f"{whole // 60}m" + (f"{whole % 60}s" if whole % 60 else "")
    if whole < 7200:
        return f"{whole // 60}m"
    return f"{whole // 3600}h" if whole < 172800 else f"{whole // 86400}d"


def plural(count: int, noun: str) -> str:
    """`1 replica`, `2 replicas`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
