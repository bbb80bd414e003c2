"""A notification goes somewhere: a command to run or an address to call."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "notify"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    notify = view.submission.torchyard.notify
    if notify is not None and not (notify.command or "").strip() and notify.webhook is None:
        yield Remark("torchyard.notify", "notify names neither a command nor a webhook", "set one of the two")
