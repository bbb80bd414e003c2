"""Known failures, found in the folder `signatures`: the first that fits what failed. Knows none of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from torchyard.diagnosis.evidence import Evidence
from torchyard.discover import load
from torchyard.domain.cause import Fault

FOLDER = "torchyard.diagnosis.signatures"


@dataclass(frozen=True, slots=True)
class Match:
    """What it was, to stand after a colon, and what the user can do."""

    sentence: str
    hint: str


@dataclass(frozen=True, slots=True)
class Recognised:
    """A match and the name of the signature that made it."""

    name: str
    match: Match


class Signature(Protocol):
    """What a module in the folder looks like."""

    @property
    def NAME(self) -> str: ...

    def match(self, lines: Sequence[str], fault: Fault | None, evidence: Evidence, /) -> Match | None: ...


def recognise(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Recognised | None:
    """The known failure that this is. The error itself counts before the lines around it."""
    known = [cast(Signature, module) for module in load(FOLDER)]
    error = (fault.exception,) if fault is not None and fault.exception else ()
    for text in (error, tuple(lines)):
        for signature in known:
            match = signature.match(text, fault, evidence) if text or fault else None
            if match is not None:
                return Recognised(signature.NAME, match)
    return None
