"""What every JSON body goes through before it is validated: nulls count as left out, text must be text."""

from typing import Any

from pydantic import model_validator

from torchyard.domain.model import Model

MAX_DEPTH = 100


class Body(Model):
    """A JSON body: camelCase, unknown fields refused."""

    @model_validator(mode="before")
    @classmethod
    def _tidy(cls, value: Any) -> Any:
        return tidy(value)


def tidy(value: Any, depth: int = 0) -> Any:
    """The value without nulls in its objects. Raises ValueError for text that no file or process can hold."""
    if depth > MAX_DEPTH:
        raise ValueError("is nested too deep")
    match value:
        case dict():
            return {tidy(key, depth): tidy(item, depth + 1) for key, item in value.items() if item is not None}
        case list():
            return [tidy(item, depth + 1) for item in value]
        case str() if "\0" in value:
            raise ValueError("holds a text with a NUL character")
        case str() if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError("holds a text with half a surrogate pair")
    return value
