"""Times that would end a workload before it has begun."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.quantities import parse_duration
from torchyard.policy.rule import Remark, View

id = "times"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    extras = view.submission.torchyard
    for name, text in (("maxTime", extras.max_time), ("pendingDeadline", extras.pending_deadline)):
        if text is not None and parse_duration(text) < 1:
            yield Remark(f"torchyard.{name}", f"{name} is {text}: it would end before it starts", "give 1s at least")
