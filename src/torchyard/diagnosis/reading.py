"""One line of output as a step, a total and a loss. Knows how training scripts print, remembers nothing."""

import enum
import math
import re
from dataclasses import dataclass

MAX_TEXT = 600
"""Characters of a line that are looked at."""
_WORTH = ("epoch", "step", "iter", "loss", "%|", "it [")

_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{1,15})(?![\d.]*\d|[\w%])"
_GAP = r"[\s\"':=#\[(]{0,6}"
_OF = rf"(?:\s*(?:/|\bof\b)\s*{_NUMBER})?"
_EPOCH = re.compile(rf"\bepoch{_GAP}{_NUMBER}{_OF}")
_STEP = re.compile(rf"\b(?:global[_ ]?)?(?:step|iter(?:ation)?){_GAP}{_NUMBER}{_OF}")
_FRACTION = re.compile(r"['\"]epoch['\"]: (\d{1,9})\.\d{1,9}")
_BAR = re.compile(
    r"^(?P<what>.{0,120}?)\s*(?<!\d)\d{1,3}%\|[^|]{0,300}\|\s*(?P<step>\d{1,15})/(?P<total>\d{1,15}) \[(?P<rest>.*)"
)
_OPEN_BAR = re.compile(r"^(?P<what>[^\d]{0,120}?)(?P<step>\d{1,15})it \[\d")
_LOSS = re.compile(
    r"\b(?:(?:train|training|lm|total|avg)[_ ])?loss[\"']?\s?[:=]?\s?[\"'(\[]?"
    r"(-?(?:\d{1,15}(?:\.\d{0,20})?(?:e[-+]?\d{1,3})?|nan|inf))(?![\w%])"
)
_WORD_BEFORE = re.compile(r"([a-z]{1,12})[\s\"'{,\[(]{0,3}$")
_NOT_NOW = frozenset(
    [
        "total",
        "max",
        "maximum",
        "num",
        "number",
        "of",
        "per",
        "every",
        "each",
        "warmup",
        "save",
        "log",
        "until",
        "steps",
        "eval",
        "val",
        "valid",
        "validation",
        "test",
    ]
)
_NOT_LOSS = frozenset(["val", "valid", "validation", "test", "eval", "best"])
_ASIDE = re.compile(
    r"download|load|fetch|extract|generating|map\b|tokeniz|filter|saving|shard|cach|index"
    r"|eval|valid|\bval\b|test|sanity|predict"
)
_BYTES = re.compile(r"\d[kmgt]?i?b/s")
_DUMP = ("namespace(", "config(", "arguments(")


class Kind(enum.IntEnum):
    """What is counted; the higher one is the better measure of a training."""

    FRACTION = 0
    BAR = 1
    STEP = 2
    EPOCH = 3
    ASKED = 4


@dataclass(frozen=True, slots=True)
class Reading:
    """What a line tells. `loss` None with `loss_said`: it is not a number any more."""

    kind: Kind
    unit: str
    step: int | None
    total: int | None
    loss: float | None
    loss_said: bool


def compiled(pattern: str) -> re.Pattern[str] | None:
    """The user's pattern; None for one that is no regular expression (a rule says so at submit)."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


def read(text: str, pattern: re.Pattern[str] | None = None) -> Reading | None:
    """What one line tells of progress; None when it tells nothing."""
    if pattern is not None:
        return _asked(text[:MAX_TEXT], pattern)
    text = text[:MAX_TEXT].lower()
    if not any(word in text for word in _WORTH) or any(word in text for word in _DUMP):
        return None
    loss = _loss(text)
    counted = _epoch(text) or _step(text) or _bar(text) or _fraction(text)
    kind, unit, step, total = counted or (Kind.FRACTION, "step", None, None)
    if step is not None and total is not None and step > total:
        step = total = None
    if step is None and loss is None:
        return None
    finite = loss if loss is not None and math.isfinite(loss) else None
    return Reading(kind, unit, step, total or None, finite, loss is not None)


_Counted = tuple[Kind, str, int | None, int | None]


def _asked(text: str, pattern: re.Pattern[str]) -> Reading | None:
    found = pattern.search(text)
    if found is None:
        return None
    named = found.groupdict()
    raw = named.get("step") or (found[1] if found.re.groups and not named else None)
    step, total, loss = _whole(raw), _whole(named.get("total")), _real(named.get("loss"))
    if step is None and loss is None:
        return None
    if step is not None and total is not None and step > total:
        total = None
    finite = loss if loss is not None and math.isfinite(loss) else None
    unit = "epoch" if "epoch" in pattern.pattern.lower() else "step"
    return Reading(Kind.ASKED, unit, step, total or None, finite, loss is not None)


def _epoch(text: str) -> _Counted | None:
    found = _first(_EPOCH, text, _NOT_NOW)
    if found is not None:
        return Kind.EPOCH, "epoch", _whole(found[1]), _whole(found[2])
    bar = _BAR.match(text) if "epochs" in text and "%|" in text else None
    if bar and "epochs" in bar["what"]:
        return Kind.EPOCH, "epoch", _whole(bar["step"]), _whole(bar["total"])
    return None


def _first(pattern: re.Pattern[str], text: str, unless: frozenset[str]) -> re.Match[str] | None:
    """The first match that does not follow one of these words, as in `steps per epoch: 100`."""
    for found in pattern.finditer(text):
        start = found.start()
        before = _WORD_BEFORE.search(text[max(0, start - 16) : start])
        if before is None or before[1] not in unless:
            return found
    return None


def _step(text: str) -> _Counted | None:
    found = _first(_STEP, text, _NOT_NOW)
    return (Kind.STEP, "step", _whole(found[1]), _whole(found[2])) if found else None


def _bar(text: str) -> _Counted | None:
    bar = _BAR.match(text) if "%|" in text else None
    if bar:
        if _ASIDE.search(bar["what"]) or _BYTES.search(bar["rest"]):
            return None
        return Kind.BAR, "step", _whole(bar["step"]), _whole(bar["total"])
    bar = _OPEN_BAR.match(text) if "it [" in text else None
    if bar and not _ASIDE.search(bar["what"]):
        return Kind.BAR, "step", _whole(bar["step"]), None
    return None


def _fraction(text: str) -> _Counted | None:
    found = _FRACTION.search(text)
    return (Kind.FRACTION, "epoch", _whole(found[1]), None) if found else None


def _loss(text: str) -> float | None:
    found = _first(_LOSS, text, _NOT_LOSS) if "loss" in text else None
    return _real(found[1]) if found else None


def _whole(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.replace(",", "").strip()
    return int(digits) if digits.isdecimal() and len(digits) <= 15 else None


def _real(text: str | None) -> float | None:
    try:
        return float(text) if text is not None and len(text) < 60 else None
    except ValueError:
        return None
