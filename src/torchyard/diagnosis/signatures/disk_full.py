"""The disk under a checkpoint or log was full. torch says so in riddles; shared memory has a signature of its own."""

from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault
from torchyard.domain.quantities import show_size

NAME = "diskFull"
_RIDDLES = ("unexpected pos ", "PytorchStreamWriter failed", "iostream error")
_PLAIN = ("No space left on device", "Disk quota exceeded")
_MEMORY = ("shm", "</torch_")


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """torch's own words for a short write, or the system's."""
    last = lines[-40:]
    plain = any(part in line and not any(word in line for word in _MEMORY) for line in last for part in _PLAIN)
    if not plain and not any(part in line for line in last for part in _RIDDLES):
        return None
    tight = ", ".join(f"{name} has {show_size(free)} free" for name, free in evidence.free.items())
    sentence = "the disk was full" if plain else "the disk was full while it wrote a checkpoint"
    return Match(
        f"{sentence} ({tight})" if tight else sentence,
        "make room or keep fewer checkpoints; the file that it was writing is cut off: "
        "`torchyard checkpoint list` shows which are whole",
    )
