"""The checkpoint that was to be loaded is cut off: its writer was killed, or the disk was full."""

import re
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault

NAME = "tornCheckpoint"
_WORDS = (
    "failed finding central directory",
    "PytorchStreamReader failed reading",
    "not a ZIP archive",
    "invalid header or archive is corrupted",
    "MetadataIncompleteBuffer",
    "InvalidHeaderDeserialization",
)
_LEGACY = re.compile(r"EOFError: Ran out of input|UnpicklingError: pickle data was truncated|unexpected EOF, expected")


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """What torch and safetensors say of a file that ends too early."""
    last = lines[-40:]
    if not any(word in line for line in last for word in _WORDS) and not any(_LEGACY.search(line) for line in last):
        return None
    return Match(
        "the checkpoint that it loaded is incomplete: whoever wrote it was killed or ran out of disk",
        "`torchyard checkpoint list` shows which are whole; remove the torn one or resume from an older one, and write "
        "to a temporary name first, then rename",
    )
