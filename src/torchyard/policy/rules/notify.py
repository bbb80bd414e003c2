"""A notification goes somewhere: a command to run or an address to call."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "notify"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    notify = view.submission.torchyard.notify
    if notify is None:
        return
    if not (notify.command or "").strip() and notify.webhook is None:
        yield Remark("torchyard.notify", "notify names neither a command nor a webhook", "set one of the two")
    if notify.webhook is not None and "@" in re.split(r"[/?#]", notify.webhook.partition("://")[2], maxsplit=1)[0]:
        yield Remark(
            "torchyard.notify.webhook",
            "the address holds a user or a password (user:password@), which would be kept in clear",
            "use a webhook that needs none, or a command: --notify 'curl -n ...' reads them from ~/.netrc",
        )
    elif notify.webhook is not None and not _callable(notify.webhook):
        yield Remark("torchyard.notify.webhook", f"{notify.webhook[:80]!r} is no address to call", "https://HOST/PATH")


def _callable(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
