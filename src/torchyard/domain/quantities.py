"""Sizes and durations as people write them: `10TB`, `10Ti`, `64Mi`, `15m`, `1h30m`."""

import re
from decimal import ROUND_CEILING, Decimal
from typing import NoReturn

from torchyard.domain.errors import Invalid

_SIZE = re.compile(r"[+]?([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,2})|[ ]*([a-zA-Z]*))")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_LARGEST = 2**63 - 1
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 10 * 365 * 86400.0
_MAX_LENGTH = 40


def parse_size(text: str) -> int:
    """Bytes of a size. `10T` and `10TB` are 10^13, `10Ti` and `10TiB` are 10 * 2^40, `1e3` is 1000, as Kubernetes and
    Run:ai have it; a part of a byte counts as a byte.

    Raises Invalid with examples when the text is no size.
    """
    match = _SIZE.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
    if match is None:
        _no_size(text)
    factor = Decimal(10) ** int(match[2]) if match[2] else Decimal(_factor(match[3] or "", text))
    size = int((Decimal(match[1]) * factor).to_integral_value(ROUND_CEILING))
    if size > _LARGEST:
        raise Invalid(f"{text!r} is larger than any storage", "sizes go up to 8Ei")
    return size


def _factor(unit: str, text: str) -> int:
    # Kubernetes reads `m` as thousandths and people may mean megabytes: neither is safe to take.
    stem = unit[:-1] if unit[-1:] in ("B", "b") else unit
    binary = stem[1:] in ("i", "I")
    power = _POWERS.get(stem[:1].upper()) if binary or len(stem) <= 1 else None
    if power is None or (unit in ("m", "e")) or (binary and not stem):
        _no_size(text)
    return int(1024**power if binary else 1000**power)


def _no_size(text: str) -> NoReturn:
    raise Invalid(f"{_cut(text)} is not a size", "write a number and a unit, such as 10T, 10TB, 10Ti or 500M")


def _cut(text: str) -> str:
    return repr(text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + "...")


def parse_duration(text: str) -> float:
    """Seconds of a duration: `90`, `90s`, `15m`, `1h30m`, `2d`. Raises Invalid with examples when it is none."""
    stripped = text.strip()
    seconds = None
    if len(text) <= _MAX_LENGTH and stripped:
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?", stripped):
            seconds = float(stripped)
        elif _DURATION.sub("", stripped) == "":
            seconds = sum(float(n) * _SECONDS[unit] for n, unit in _DURATION.findall(stripped))
    if seconds is None:
        raise Invalid(f"{_cut(text)} is not a duration", "write a number and a unit, such as 90s, 15m, 1h30m or 2d")
    if seconds > _LONGEST:
        raise Invalid(f"{_cut(text)} is longer than ten years", "write a shorter time, such as 15m, 12h or 30d")
    return seconds


def show_size(size: float) -> str:
    """A size for people: three significant digits at most and a binary unit."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def show_duration(seconds: float) -> str:
    """A duration for people: its two largest units, such as `1h30m`, `45s`."""
    whole = max(0, round(seconds))
    parts = [
        (whole // 86400, "d"),
        (whole % 86400 // 3600, "h"),
        (whole % 3600 // 60, "m"),
        (whole % 60, "s"),
    ]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    shown = [f"{n}{unit}" for n, unit in parts[:2] if n]
    return "".join(shown) or "0s"
