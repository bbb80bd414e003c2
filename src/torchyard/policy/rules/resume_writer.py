"""On a claim that workloads share, a snapshot may be another one's by now."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.launch import DEFAULT_CHECKPOINT
from torchyard.policy.rule import Remark, View

SHOWN = 3

id = "resume-writer"
severity = Severity.WARNING


def check(view: View) -> Iterator[Remark]:
    asked = view.submission.torchyard.resume_from
    if asked is None or view.resume_own is None:
        return
    name, _, file = asked.partition(":")
    own = ", ".join(f"{name}:{path}" for path in view.resume_own[:SHOWN])
    yield Remark(
        "torchyard.resumeFrom",
        f"{(file or DEFAULT_CHECKPOINT)[:200]} was written while {name} did not run, so it is another workload's "
        "or was put there by hand",
        f"what {name} wrote itself: {own}" if own else f"see `torchyard checkpoint list {name}`",
    )
