"""Sizes and durations as people write them: `10TB`, `10Ti`, `64Mi`, `15m`, `1h30m`."""

import re

from torchyard.domain.errors import Invalid

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*$")
_DECIMAL = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_size(text: str) -> int:
    """Bytes of a size. `10T` and `10TB` are 10^13, `10Ti` and `10TiB` are 10 * 2^40, as Kubernetes and Run:ai have it.

    Raises Invalid with examples when the text is no size.
    """
    match = _SIZE.match(text)
    if match:
        number, unit = float(match[1]), match[2]
        stem = unit[:-1] if unit[-1:] in ("B", "b") else unit
        if stem[1:] in ("i", "I") and stem[:1].upper() in _DECIMAL:
            return int(number * 1024 ** _DECIMAL[stem[0].upper()])
        if len(stem) <= 1 and stem.upper() in _DECIMAL:
            return int(number * 1000 ** _DECIMAL[stem.upper()])
    raise Invalid(f"{text[:40]!r} is not a size", "write a number and a unit, such as 10T, 10TB, 10Ti or 500M")


def parse_duration(text: str) -> float:
    """Seconds of a duration: `90`, `90s`, `15m`, `1h30m`, `2d`. Raises Invalid with examples when it is none."""
    stripped = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", stripped):
        return float(stripped)
    if stripped and _DURATION.sub("", stripped) == "":
        return sum(float(n) * _SECONDS[unit] for n, unit in _DURATION.findall(stripped))
    raise Invalid(f"{text[:40]!r} is not a duration", "write a number and a unit, such as 90s, 15m, 1h30m or 2d")


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
