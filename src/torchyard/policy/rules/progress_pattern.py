"""A progress pattern must be one, name the step, and stay quick on every line of a log."""

import re
from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "progress-pattern"
severity = Severity.ERROR
WHERE = "torchyard.progress.pattern"
EXAMPLE = r"such as `Epoch (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>[\d.]+)`"
_SKIP = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ENDLESS = re.compile(r"[*+]|\{\d*,\}")
MAX_WILD = 2


def check(view: View) -> Iterator[Remark]:
    progress = view.submission.torchyard.progress
    if progress is None or progress.pattern is None:
        return
    try:
        groups = re.compile(progress.pattern).groupindex
    except (re.error, OverflowError, RecursionError) as error:
        yield Remark(WHERE, f"the progress pattern is no regular expression: {error}", EXAMPLE)
        return
    if "step" not in groups:
        yield Remark(WHERE, "the progress pattern has no group named step", EXAMPLE)
    elif _slow(progress.pattern):
        yield Remark(
            WHERE,
            "the progress pattern can take for ever on one line (a repetition of repetitions)",
            f"use plain groups without * or + around them, {EXAMPLE}",
        )


def _slow(pattern: str) -> bool:
    """A group that repeats without end and holds an endless repetition or a choice, or several `.*`."""
    text = _SKIP.sub("x", pattern)
    if len(re.findall(r"\.(?:[*+]|\{\d*,\})", text)) > MAX_WILD:
        return True
    risky: list[bool] = [False]
    for position, letter in enumerate(text):
        match letter:
            case "(":
                risky.append(False)
            case ")" if len(risky) > 1:
                inner = risky.pop()
                endless = _ENDLESS.match(text, position + 1) is not None
                if inner and endless:
                    return True
                risky[-1] = risky[-1] or inner
            case "|":
                risky[-1] = True
            case _ if _ENDLESS.match(text, position):
                risky[-1] = True
    return False
