"""A Python module is not there in the environment that ran the command."""

import re
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault

NAME = "missingModule"
_SAID = re.compile(r"ModuleNotFoundError: No module named '([^']{1,200})'|: No module named (\S{1,200})$")


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """An import that failed, or `python -m` with a name that is not there."""
    for line in reversed(lines[-40:]):
        if found := _SAID.search(line):
            name = found[1] or found[2]
            return Match(
                f"Python module {name} is not installed where it ran",
                f"install {name.partition('.')[0]} into the environment that runs the command, start from the one that "
                "has it, or, if it is a file of yours, run from its folder",
            )
    return None
