"""Who starts next and why the others wait: strictly first come, first served over devices. Knows no engine.

Attempts that follow an earlier one come before first attempts; within each, the older workload first. All replicas of a
workload start together or none does, and nobody overtakes: small workloads behind a large one wait with it, so the one
in front is never starved. Three kinds are outside the line and hold nobody up: who needs no device starts at once; who
waits out a back-off has given its devices back and returns to its place when the time has come; who needs more than
the cluster has can never start.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from torchyard.domain.retry import MAX_BACKOFF
from torchyard.domain.workload import Workload

SHOWN_PLACES = 10
"""Further back no numbers are told: they would change, and be written down, with every start and end."""
SHOWN_HOLDERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A workload that has devices now."""

    name: str
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """Who may start now, in this order, and a sentence for each other one by workload id."""

    starts: tuple[Workload, ...]
    sentences: dict[str, str]


def pick(
    waiting: tuple[Workload, ...],
    *,
    total: int,
    foreign: tuple[str, ...],
    holders: tuple[Holder, ...],
    now: datetime,
) -> Picked:
    """`total` devices, of which others hold one for each sentence in `foreign` and we what `holders` say."""
    free = total - len(foreign) - sum(holder.devices for holder in holders)
    held = list(holders)
    starts: list[Workload] = []
    line: list[Workload] = []
    sentences: dict[str, str] = {}
    for workload in sorted(waiting, key=_place):
        needs = workload.submission.devices
        if _backs_off(workload, now):
            sentences[workload.id] = f"tries again at {workload.not_before:%H:%M:%S} UTC, after a back-off"
        elif needs == 0:
            starts.append(workload)
        elif needs > total:
            sentences[workload.id] = f"needs {_devices(needs)}, and the cluster has {total}"
        elif line or needs > free:
            line.append(workload)
        else:
            starts.append(workload)
            held.append(Holder(name=workload.name, devices=needs))
            free -= needs
    state = f"{max(0, free)} of {total} {'is' if free == 1 else 'are'} free{_held(held, foreign)}"
    for place, workload in enumerate(line, start=1):
        sentences[workload.id] = _sentence(workload, place, state, line[0])
    return Picked(starts=tuple(starts), sentences=sentences)


def _backs_off(workload: Workload, now: datetime) -> bool:
    """No back-off is longer than the longest: what ends later than that was decided before the clock was set back."""
    until = workload.not_before
    return until is not None and now < until <= now + timedelta(seconds=MAX_BACKOFF)


def _place(workload: Workload) -> tuple[bool, datetime, str]:
    return workload.attempts == 0, workload.created_at, workload.id


def _sentence(workload: Workload, place: int, state: str, first: Workload) -> str:
    needs = f"needs {_devices(workload.submission.devices)}"
    if place == 1:
        return f"{needs}, {state}; next in line"
    if place > SHOWN_PLACES:
        return f"{needs}; {SHOWN_PLACES} workloads or more are before it in line"
    behind = f", behind {first.name} which needs {first.submission.devices}" if place == 2 else ""
    return f"{needs}, {state}; {_ordinal(place)} in line{behind}"


def _held(holders: list[Holder], foreign: tuple[str, ...]) -> str:
    ours = [f"{holder.name} holds {holder.devices}" for holder in holders if holder.devices]
    shown = ours[:SHOWN_HOLDERS]
    if len(ours) > SHOWN_HOLDERS:
        shown.append(f"{len(ours) - SHOWN_HOLDERS} more hold the rest")
    if foreign:
        others = "; ".join(dict.fromkeys(text for text in foreign[:SHOWN_HOLDERS] if text))
        shown.append(f"{len(foreign)} not ours" + (f": {others}" if others else ""))
    return f" ({', '.join(shown)})" if shown else ""


def _devices(number: int) -> str:
    return "1 device" if number == 1 else f"{number} devices"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
