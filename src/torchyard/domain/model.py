"""The shape that all documents share, and the kinds of values that their fields hold."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from torchyard.domain.errors import Invalid
from torchyard.domain.quantities import parse_size

MAX_NAME = 63
NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""Names become Kubernetes object names: lower case letters, digits and dashes, at most 63 of them."""

Name = Annotated[str, Field(pattern=NAME, max_length=MAX_NAME)]


def _counted(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a whole number")
    return value


Whole = Annotated[int, BeforeValidator(_counted)]
"""A whole number; true and false are none."""


class Model(BaseModel):
    """Frozen, camelCase outside, snake_case inside, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )


def sized(value: str | None) -> str | None:
    """A size that can be understood."""
    if value is not None:
        understood(parse_size, value)
    return value


def some_size(value: str | None) -> str | None:
    """A size of more than nothing."""
    if value is not None and understood(parse_size, value) == 0:
        raise ValueError("must be more than zero")
    return value


def straight(path: str) -> str:
    """A path of a mount that means what it says."""
    if ".." in path.split("/"):
        raise ValueError("leads upwards (..): write the path out")
    return path


def understood(parse: Callable[[str], float], text: str) -> float:
    """What the text means. A text that means nothing is one problem of a field among others: a ValueError."""
    try:
        return parse(text)
    except Invalid as error:
        raise ValueError(f"{error.message}; {error.details}") from error
