"""Shared memory (/dev/shm) was too small for data loader workers or NCCL. `No space left` is not the disk here."""

import signal
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault
from torchyard.domain.quantities import show_size

NAME = "smallShm"
_WORDS = (
    "unable to allocate shared memory(shm)",
    "unable to write to file </torch_",
    "is killed by signal: Bus error",
    "Caught signal 7 (Bus error",
    "Signal 7 (SIGBUS)",
    "insufficient shared memory (shm)",
    "out of shared memory",
)
_BUS_EXIT = 128 + signal.SIGBUS


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """torch's words, or death by SIGBUS, which a full tmpfs sends."""
    by_bus = fault is not None and (fault.signal == signal.SIGBUS or fault.code == _BUS_EXIT)
    if not by_bus and not any(word in line for line in lines[-60:] for word in _WORDS):
        return None
    size = evidence.shm.get(fault.replica) if fault is not None else None
    known = f" of {show_size(size)}" if size is not None else ""
    return Match(
        f"shared memory (/dev/shm{known}) was too small, the disk is not the matter",
        "ask for more with `largeShmRequest: true` (--large-shm) or an emptyDirVolume at /dev/shm, or use fewer "
        "data loader workers",
    )
