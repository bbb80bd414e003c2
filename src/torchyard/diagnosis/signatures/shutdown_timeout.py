"""torchrun killed a rank that was still ending: its patience after SIGTERM was shorter than the rank's last save."""

import re
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault

NAME = "shutdownTimeout"
_FORCED = re.compile(r"Unable to shutdown process \d+ via (?:\w+\.)?(\w+), forcefully exiting via (?:\w+\.)?(\w+)")


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """Only where the shutdown itself is the story: no rank failed before it."""
    if fault is not None and (fault.exception is not None or fault.signal not in (None, 9, 15)):
        return None
    if not any(_FORCED.search(line) for line in lines):
        return None
    return Match(
        "torchrun killed a rank that had not ended in time after SIGTERM, so what it was saving is lost",
        "give it longer with `terminationGracePeriodSeconds` (torchyard passes it on to torchrun), or set "
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT to more seconds than a save takes",
    )
