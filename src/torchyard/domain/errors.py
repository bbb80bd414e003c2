"""Errors that a person meets. Each says what happened and what to do; the status is the HTTP code it becomes."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: the field (dotted path), what is wrong, and the Run:ai rule atom it breaks."""

    field: str
    details: str
    rule: str = "options"


class TorchyardError(Exception):
    """Base of all errors with a sentence for the user. `details` says what to do about it."""

    status: ClassVar[int] = 500

    def __init__(self, message: str, details: str | None = None, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.problems = problems

    @property
    def whole(self) -> str:
        """What happened and, in parentheses, what to do about it."""
        return f"{self.message} ({self.details})" if self.details else self.message


class Invalid(TorchyardError):
    """The input cannot be understood or does not make sense."""

    status = 400


class Unauthorized(TorchyardError):
    """Nobody we know."""

    status = 401


class Forbidden(TorchyardError):
    """Somebody we know, who may not do this."""

    status = 403


class NotFound(TorchyardError):
    """No such thing."""

    status = 404


class Conflict(TorchyardError):
    """A taken name, or an action that the thing's present state does not allow."""

    status = 409


class InUse(TorchyardError):
    """It cannot be deleted while something uses it."""

    status = 412


class TooLarge(TorchyardError):
    """More bytes than are taken."""

    status = 413


class TooMany(TorchyardError):
    """Asked too often. `seconds` until it may be asked again."""

    status = 429

    def __init__(self, message: str, details: str | None = None, seconds: int = 1) -> None:
        super().__init__(message, details)
        self.seconds = seconds


class Unavailable(TorchyardError):
    """Not now: the engine, the store or the disk cannot do it at the moment."""

    status = 503
