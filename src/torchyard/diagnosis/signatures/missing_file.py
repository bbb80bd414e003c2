"""The script itself is not there."""

import re
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault

NAME = "missingFile"
_SAID = re.compile(
    r"can't open file '?([^':]{1,500})'?: \[Errno 2\]"
    r"|^(?:bash|sh|/bin/(?:ba)?sh): (?:\d+: )?(?:cannot open |can't open '?)?"
    r"'?([^':]{1,500}?)'?: No such file(?: or directory)?$"
)


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """As python, bash and sh say it."""
    for line in reversed(lines[-40:]):
        if found := _SAID.search(line):
            return Match(
                f"there is no file {found[1] or found[2]} in the folder where it ran",
                "name the script relative to the folder that you submit from, or give `workingDir` (--working-dir)",
            )
    return None
