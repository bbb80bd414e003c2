"""What validation found, in words for people: dotted fields, `did you mean`, Run:ai's rule atoms. Pure."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from torchyard.domain.errors import Invalid, Problem

_RULES = {
    "missing": "required",
    "greater_than": "min",
    "greater_than_equal": "min",
    "string_too_short": "min",
    "too_short": "min",
    "less_than": "max",
    "less_than_equal": "max",
    "string_too_long": "max",
    "too_long": "max",
    "multiple_of": "step",
}
_PLACES = ("body", "query", "path", "header")


def problems_of(errors: Iterable[ErrorDetails | Any], model: type[BaseModel] | None = None) -> tuple[Problem, ...]:
    """A problem for each error of a validation. `model` is what was validated, for `did you mean`."""
    return tuple(_problem(error, model) for error in errors)


def _problem(error: Any, model: type[BaseModel] | None) -> Problem:
    loc = tuple(error["loc"])
    if loc[:1] and loc[0] in _PLACES:
        loc = loc[1:]
    return Problem(field=_dotted(loc), details=_details(error, loc, model), rule=_RULES.get(error["type"], "options"))


def _dotted(loc: Sequence[int | str]) -> str:
    """`spec.storage.pvc[0].path`"""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _details(error: Any, loc: Sequence[int | str], model: type[BaseModel] | None) -> str:
    cause = error.get("ctx", {}).get("error")
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "no such field" + did_you_mean(str(loc[-1]), _names_at(model, loc[:-1]))
        case "model_attributes_type" | "dict_type" | "model_type":
            return "must be an object; send JSON with `Content-Type: application/json`"
        case "value_error" if isinstance(cause, Invalid):
            return f"{cause.message}; {cause.details}" if cause.details else cause.message
        case "value_error":
            return str(cause)
        case "string_pattern_mismatch":
            return f"must match {error['ctx']['pattern']}"
    message = str(error["msg"])
    return message[:1].lower() + message[1:]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean numWorkers?`, or nothing where nothing is near."""
    folded = {word.lower().replace("_", ""): word for word in known}
    near = difflib.get_close_matches(name[:80].lower().replace("_", ""), folded, n=1, cutoff=0.7)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def _names_at(model: type[BaseModel] | None, loc: Sequence[int | str]) -> tuple[str, ...]:
    """Names of the fields that are known at this place."""
    for part in loc:
        if model is None or isinstance(part, int):
            continue
        found = [f for name, f in model.model_fields.items() if part in (name, f.alias)]
        model = _model_in(found[0].annotation) if found else None
    if model is None:
        return ()
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside `Model | None`, `tuple[Model, ...]`, `Annotated[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        inner = _model_in(argument)
        if inner is not None:
            return inner
    return None
