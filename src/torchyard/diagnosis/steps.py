"""The furthest step that the log of an ended attempt shows."""

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.progress import Reader


def furthest(evidence: Evidence) -> int | None:
    """Over all replicas. None where the output tells none."""
    best: int | None = None
    for records in evidence.logs.values():
        reader = Reader(pattern=evidence.pattern)
        for record in records:
            reader.read(record)
        if reader.furthest is not None and (best is None or reader.furthest > best):
            best = reader.furthest
    return best
