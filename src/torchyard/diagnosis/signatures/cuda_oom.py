"""The GPU's own memory did not suffice. The machine's memory is a cause of its own."""

import re
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault

NAME = "cudaOom"
_SAID = re.compile(
    r"OutOfMemoryError: (?:CUDA|HIP|XPU) out of memory|CUDA out of memory\. Tried|CUBLAS_STATUS_ALLOC_FAILED"
)


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """torch's words since 1.0."""
    if not any(_SAID.search(line) for line in lines[-40:]):
        return None
    return Match(
        "the GPU's memory was not enough",
        "use a smaller batch, gradient accumulation or activation checkpointing, or more devices with sharding",
    )
