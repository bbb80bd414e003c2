"""Text of a spec file, YAML or JSON, to plain values. Knows nothing of what the values mean.

Errors name line and column. What could stall or surprise is refused: long texts, bombs of aliases, keys given twice.
"""

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from torchyard.domain.errors import Invalid, TooLarge

MAX_CHARACTERS = 256_000
MAX_VALUES = 20_000
"""Values of a YAML text after its aliases are written out."""
MAX_DEPTH = 100


def parse_text(text: str, name: str) -> object:
    """What a spec file holds. `name` is the file's name: it chooses JSON or YAML and stands before every error.

    Raises Invalid with line and column, TooLarge.
    """
    if len(text) > MAX_CHARACTERS:
        raise TooLarge(
            f"{_short(name)}: has {len(text):,} characters; a spec file has at most {MAX_CHARACTERS:,}",
            "data belongs on a claim, code in the folder that `torchyard.code` names",
        )
    if not text.strip():
        raise Invalid(f"{_short(name)}: is empty", "a spec file begins with `kind:`, `name:` and `spec:`")
    try:
        return _json(text, name) if _is_json(text, name) else _yaml(text, name)
    except RecursionError:
        raise Invalid(f"{_short(name)}: is nested too deep") from None


def _is_json(text: str, name: str) -> bool:
    """By the ending; without one by the look: YAML has objects in braces too, but seldom begins with `{"`."""
    lower = name.lower()
    if lower.endswith((".json", ".yaml", ".yml")):
        return lower.endswith(".json")
    return text.lstrip("\ufeff \t\r\n").startswith("{") and text.split("{", 1)[1].lstrip()[:1] in ('"', "}")


def _json(text: str, name: str) -> object:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            names = [key for key, _ in items]
            twice = next(key for key in names if names.count(key) > 1)
            raise Invalid(f"{_short(name)}: {twice[:60]!r} is given twice in one object")
        return found

    def no_number(constant: str) -> NoReturn:
        raise Invalid(f"{_short(name)}: {constant} is not a JSON number")

    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=pairs, parse_constant=no_number)
    except json.JSONDecodeError as error:
        document = error.doc
        position, what = _json_fault(document, error)
    except ValueError:
        raise Invalid(f"{_short(name)}: holds a number with too many digits") from None
    line = document.count("\n", 0, position) + 1
    raise _at(name, line, position - document.rfind("\n", 0, position), what)


def _json_fault(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """Position and sentence. Python's own words for a comma before a bracket differ from version to version."""
    before = text[: error.pos].rstrip()
    after = text[error.pos :].lstrip()
    if before.endswith(",") and after[:1] in ("}", "]"):
        return len(before) - 1, f"a comma too many: nothing follows it before `{after[0]}`"
    if after.startswith(",") and after[1:].lstrip()[:1] in ("}", "]"):
        return error.pos + text[error.pos :].index(","), "a comma too many: nothing follows it before the bracket"
    if not after:
        return error.pos, "the text ends too early: a bracket or a quote is not closed"
    message = error.msg
    return error.pos, message[:1].lower() + message[1:]


def _yaml(text: str, name: str) -> object:
    # Imported here: it takes a third of the start-up of a command that reads no file.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    try:
        _weigh(YAML(typ="safe", pure=True).parse(text), name)
        value: object = YAML(typ="safe", pure=True).load(text)
        return value
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = _yaml_fault(str(error.problem or error.context or "cannot be read"))
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    except ReaderError as error:
        what = "a character that no text has"
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
    except (YAMLError, ValueError):
        raise Invalid(f"{_short(name)}: is not YAML", "check numbers, dates and tags (`!`)") from None
    raise _at(name, line, column, what)


def _weigh(events: Iterable[Any], name: str) -> None:
    """Refuse a text that is too deep or too much with its aliases written out, before any of it is built.

    Goes over the events once: building first and measuring later is what a bomb of aliases waits for.
    """
    stack: list[tuple[str | None, int]] = []
    anchors: dict[str, int] = {}
    total = 0
    for event in events:
        anchor: str | None = getattr(event, "anchor", None)
        match type(event).__name__:
            case "AliasEvent":
                # An alias inside its own anchor never ends. One that nobody defined is the builder's to refuse.
                inside = any(anchor == outer for outer, _ in stack)
                total += MAX_VALUES + 1 if inside else anchors.get(anchor or "", 0)
            case "ScalarEvent":
                total += 1
                if anchor:
                    anchors[anchor] = 1
            case "SequenceStartEvent" | "MappingStartEvent":
                stack.append((anchor, total))
                total += 1
            case "SequenceEndEvent" | "MappingEndEvent":
                anchor, before = stack.pop()
                if anchor:
                    anchors[anchor] = total - before
        if len(stack) > MAX_DEPTH:
            raise RecursionError
        if total > MAX_VALUES:
            raise TooLarge(
                f"{_short(name)}: has more than {MAX_VALUES:,} values once its aliases (`*name`) are written out",
                "write fewer values",
            )


def _yaml_fault(problem: str) -> str:
    problem = problem.strip().splitlines()[0]
    if "expected a single document" in problem or "but found another document" in problem:
        return "a second document begins here; a spec file is one document"
    if "duplicate key" in problem:
        return problem.split(" with value")[0][:120]
    if "\\t" in problem:
        return "a tab where only spaces may indent"
    return problem[:160]


def _at(name: str, line: int, column: int, what: str) -> Invalid:
    return Invalid(f"{_short(name)}: line {line}, column {column}: {what}")


def _short(name: str) -> str:
    return name if len(name) <= 100 else "..." + name[-97:]
