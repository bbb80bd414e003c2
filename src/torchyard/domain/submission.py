"""From plain values (a parsed spec file, a request) to a Submission, or to one error that names every problem.

Knows no file and no server. Values that may be secret are never repeated.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from torchyard.domain.document import parse_text as parse_text
from torchyard.domain.errors import Invalid, Problem
from torchyard.domain.model import NAME
from torchyard.domain.spec import Submission

MAX_DEPTH = 100
MAX_SHOWN = 40
_CONTENT_HASH = "sha256:"
_SECRET_PLACES = ("environmentVariables", "annotations", "notify", "imagePullSecrets", "probes", "urls", "url")
_RULES = {
    "missing": "required",
    "greater_than": "min",
    "greater_than_equal": "min",
    "string_too_short": "min",
    "less_than": "max",
    "less_than_equal": "max",
    "string_too_long": "max",
}
_WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of a sensible size",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
_PATTERNS = {
    NAME: "is not a name: use lower-case letters, digits and dashes, a letter first and no dash last",
    r"^/": "must be an absolute path: begin with /",
    r"^https?://": "must begin with http:// or https://",
    r"^sha256:[0-9a-f]{64}$": "must be the content hash of uploaded code: sha256: and 64 hex digits",
    r"^[A-Za-z_][A-Za-z0-9_.-]*$": "is not the name of a variable: use letters, digits and _, no digit first",
}

Path = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFile:
    """What a spec file says. `code` is the path of a folder on the caller's machine, for the caller to upload."""

    submission: Submission
    code: str | None = None


def parse_submission(data: object, where: str = "") -> Submission:
    """The submission that `data` describes. `where` (a file's name) stands before the sentence.

    Raises Invalid with a Problem for each thing wrong. Nulls count as left out.
    """
    problems: list[Problem] = []
    clean = _tidy(data, (), problems)
    if isinstance(clean, dict) and "apiVersion" in clean:
        problems = [Problem("apiVersion", "this is a Kubernetes manifest, not a spec file", "options")]
    if not problems:
        if not isinstance(clean, dict):
            problems = [
                Problem("", f"a spec file is an object that begins with `kind:`, not {_kind_of(data)}", "options")
            ]
        else:
            try:
                return Submission.model_validate(clean)
            except ValidationError as error:
                problems = list(problems_of(error.errors(include_url=False), Submission))
    raise _invalid(problems, where)


def load_spec_file(data: object, where: str = "") -> SpecFile:
    """A spec file, where `torchyard.code` may be the path of a folder. Raises Invalid, also for names set twice."""
    file = _spec_file(data, where)
    problems = _set_twice(file.submission)
    if problems:
        raise _invalid(problems, where)
    return file


def _set_twice(submission: Submission) -> list[Problem]:
    """Later ones win where words of a command line follow a file; in one file a second one is a slip."""
    specs = {"spec": submission.spec, "masterSpec": submission.master_spec}
    return [
        Problem(f"{field}.environmentVariables", f"{name} is set twice", "options")
        for field, spec in specs.items()
        for name, times in Counter(v.name for v in (spec.environment_variables if spec else ())).items()
        if times > 1
    ]


def _spec_file(data: object, where: str) -> SpecFile:
    if not isinstance(data, Mapping) or not isinstance(data.get("torchyard"), Mapping):
        return SpecFile(submission=parse_submission(data, where))
    extras = dict(data["torchyard"])
    code = extras.get("code")
    if not isinstance(code, str) or code.startswith(_CONTENT_HASH):
        return SpecFile(submission=parse_submission(data, where))
    del extras["code"]
    if not code.strip() or "\0" in code:
        raise _invalid([Problem("torchyard.code", "must be the path of a folder, such as `.`", "options")], where)
    return SpecFile(submission=parse_submission({**data, "torchyard": extras}, where), code=code)


def problems_of(errors: Iterable[ErrorDetails], model: type[BaseModel]) -> tuple[Problem, ...]:
    """A problem for each error that pydantic found in an input of `model`."""
    return tuple(
        Problem(dotted(error["loc"]), _details(error, model), _RULES.get(error["type"], "options")) for error in errors
    )


def dotted(path: Path) -> str:
    """`spec.storage.pvc[0].path`"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_cut(str(part))}" for part in path)
    return text.removeprefix(".")


def _invalid(problems: list[Problem], where: str) -> Invalid:
    sentences = [f"{p.field}: {p.details}" if p.field else p.details for p in problems]
    more = len(sentences) - 5
    text = "; ".join(sentences[:5]) + (f"; and {more} more" if more > 0 else "")
    return Invalid(f"{where[-100:]}: {text}" if where else text, None, tuple(problems))


def _tidy(value: object, path: Path, problems: list[Problem]) -> object:
    """The value without nulls in its objects; what no file, process or JSON can hold becomes a problem."""
    if len(path) > MAX_DEPTH:
        problems.append(Problem(dotted(path[:3]), "is nested too deep", "options"))
        return None
    match value:
        case Mapping():
            wrong = [key for key in value if not isinstance(key, str)]
            if wrong:
                problems.append(Problem(dotted(path), f"the key {_show(wrong[0])} is not text; put it in quotes"))
                return None
            return {k: _tidy(item, (*path, k), problems) for k, item in value.items() if item is not None}
        case list() | tuple():
            return [_tidy(item, (*path, index), problems) for index, item in enumerate(value)]
        case str() if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            problems.append(Problem(dotted(path), "holds a character that no text has"))
        case str() | int() | float() | None:
            return value
        case date():
            problems.append(Problem(dotted(path), "is a date where text is wanted; put it in quotes"))
        case _:
            problems.append(Problem(dotted(path), "is neither text, number, list nor object"))
    return None


def _details(error: ErrorDetails, model: type[BaseModel]) -> str:
    kind, path, value, context = error["type"], error["loc"], error["input"], error.get("ctx", {})
    shown = None if _may_be_secret(path) else _show(value)
    if kind in _WANTED:
        return f"{shown or 'the value'} is not {_WANTED[kind]}"
    match kind:
        case "missing":
            names = _choices(model, path)
            return f"is missing; choose {names}" if names else "is missing"
        case "extra_forbidden":
            return _unknown(str(path[-1]), _names_at(model, path[:-1]))
        case "string_type":
            return _not_text(value, shown)
        case "literal_error" | "enum":
            return _not_one_of(str(value), shown, str(context.get("expected", "")))
        case "string_pattern_mismatch":
            sentence = _PATTERNS.get(str(context.get("pattern")), f"must match {context.get('pattern')}")
            return f"{shown} {sentence}" if shown and sentence.startswith("is ") else sentence
        case "string_too_long":
            return f"has {len(str(value)):,} characters; at most {context.get('max_length')} are allowed"
        case "string_too_short":
            return "is empty"
        case "greater_than_equal":
            return f"{shown or 'the value'} is too small; the least is {context.get('ge')}"
        case "less_than_equal":
            return f"{shown or 'the value'} is too large; the most is {context.get('le')}"
        case "tuple_type" | "list_type":
            return f"must be a list (in YAML, lines that begin with `- `), not {_kind_of(value)}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"must be an object (`key: value`), not {_kind_of(value)}"
        case "value_error":
            return str(context.get("error"))
    message = error["msg"]
    return message[:1].lower() + message[1:]


def _unknown(name: str, known: tuple[str, ...]) -> str:
    folded = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name[:80].lower().replace("_", ""), folded, n=1, cutoff=0.7)
    return "no such field" + (f"; did you mean {folded[near[0]]}?" if near else "")


def _not_text(value: object, shown: str | None) -> str:
    if isinstance(value, bool | int | float):
        return f"{shown} is not text; write it in quotes" if shown else "is not text; write it in quotes"
    return f"must be text, not {_kind_of(value)}"


def _not_one_of(value: str, shown: str | None, expected: str) -> str:
    names = expected.replace("'", "").replace(" or ", ", ").split(", ")
    near = difflib.get_close_matches(value[:80].lower(), [n.lower() for n in names], n=1, cutoff=0.7)
    meant = next((n for n in names if near and n.lower() == near[0]), None)
    sentence = f"{shown or 'the value'} is not one of {', '.join(n or '(empty)' for n in names)}"
    return f"{sentence}; did you mean {meant}?" if meant else sentence


def _may_be_secret(path: Path) -> bool:
    return any(part in _SECRET_PLACES or part == "value" for part in path)


def _show(value: object) -> str | None:
    """A scalar, cut to a short length; None for what is too large to show."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value) if isinstance(value, float) or abs(value) < 10**MAX_SHOWN else "the number"
        case str():
            return repr(_cut(value))
    return None


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _kind_of(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
    return "a value of another kind"


def _names_at(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """Names of the fields that are known at this place."""
    found: type[BaseModel] | None = model
    for part in path:
        if found is None or isinstance(part, int):
            continue
        fields = [f for name, f in found.model_fields.items() if part in (name, f.alias)]
        found = _model_in(fields[0].annotation) if fields else None
    return tuple(f.alias or name for name, f in found.model_fields.items()) if found else ()


def _choices(model: type[BaseModel], path: Path) -> str:
    """What a missing field may be, where that is a short list: the kind of a workload."""
    if len(path) != 1 or path[0] != "kind":
        return ""
    annotation: Any = model.model_fields["kind"].annotation
    return ", ".join(str(choice.value) for choice in annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside `Model | None`, `tuple[Model, ...]`, `Annotated[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner for inner in map(_model_in, get_args(annotation)) if inner is not None), None)
