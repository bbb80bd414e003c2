"""The one dominant reason why a workload is not making progress, with evidence and the next step."""

from dataclasses import dataclass

from torchyard.domain.cause import Cause, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What `torchyard explain` says. `sentence` stands alone, `evidence` are facts, `next_step` is what to do."""

    phase: str
    sentence: str
    cause: Cause | None = None
    fault: Fault | None = None
    evidence: tuple[str, ...] = ()
    next_step: str = ""
