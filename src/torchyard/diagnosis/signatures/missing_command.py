"""The shell did not find a program, such as torchrun: exit 127."""

import re
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault

NAME = "missingCommand"
_SAID = re.compile(r"(?:^|\s)([^\s:]{1,200}): (?:command )?not found$")
_EXIT = 127


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """Exit 127 and the shell's words; exit 127 alone is not proof."""
    if fault is None or fault.code != _EXIT:
        return None
    for line in reversed(lines[-40:]):
        if found := _SAID.search(line):
            program = found[1]
            hint = "submit from the environment that has it (PATH travels along), or name it with its full path"
            if program in ("torchrun", "python", "python3"):
                hint = f"activate the environment that has PyTorch before you submit, or put it into the image: {hint}"
            return Match(f"there is no program {program} on its PATH", hint)
    return None
