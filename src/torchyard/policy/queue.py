"""Who starts next and why the others wait: strictly in line, within each project's quota. Knows no engine.

Higher priorities come first; within each, attempts that follow an earlier one come before first attempts; then the
older workload. All replicas of a workload start together or none does, and nobody overtakes: small workloads behind a
large one wait with it, so the one in front is never starved by its equals.

Whoever needs more than its project has left waits in a line of the project's own, and so does everybody of that project
behind it; workloads of other projects pass. Three kinds are outside every line and hold nobody up: who needs no device
starts at once; who waits out a back-off has given its devices back and returns to its place when the time has come; who
needs more than the cluster has, or than the quota of its project is, can never start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from torchyard.domain.retry import MAX_BACKOFF
from torchyard.domain.workload import Workload

SHOWN_PLACES = 10
"""Further back no numbers are told: they would change, and be written down, with every start and end."""
SHOWN_HOLDERS = 4
PRIORITIES = ("very-low", "low", "medium-low", "medium", "medium-high", "high", "very-high")
PRIORITY = "low"
"""Of a workload that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A workload that has devices now."""

    name: str
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Devices that the workloads of a project may hold together, and who of them has some, on whatever cluster."""

    quota: int
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """Who may start now, in this order, and a sentence for each other one by workload id."""

    starts: tuple[Workload, ...]
    sentences: dict[str, str]


@dataclass(slots=True)
class _Room:
    """What is left of the devices of a cluster or of a quota, and the line for them."""

    whole: int
    holders: list[Holder]
    foreign: tuple[str, ...] = ()
    line: list[Workload] = field(default_factory=list)

    @property
    def free(self) -> int:
        return self.whole - len(self.foreign) - sum(holder.devices for holder in self.holders)

    def takes(self, workload: Workload) -> bool:
        """Nobody is before it, and it fits."""
        return not self.line and workload.submission.devices <= self.free


def pick(
    waiting: tuple[Workload, ...],
    *,
    total: int,
    foreign: tuple[str, ...],
    holders: tuple[Holder, ...],
    shares: Mapping[str, Share],
    now: datetime,
) -> Picked:
    """`total` devices, of which others hold one for each sentence in `foreign` and we what `holders` say.

    `shares` are those of the projects that have a quota, by name.
    """
    cluster = _Room(total, list(holders), foreign)
    projects = {name: _Room(share.quota, list(share.holders)) for name, share in shares.items()}
    starts: list[Workload] = []
    sentences: dict[str, str] = {}
    for workload in sorted(waiting, key=_place):
        project = projects.get(workload.project)
        rooms = [cluster] if project is None else [project, cluster]
        needs = workload.submission.devices
        outside = _outside(workload, total, project, now)
        full = next((room for room in rooms if not room.takes(workload)), None)
        if outside is not None:
            sentences[workload.id] = outside
        elif needs == 0:
            starts.append(workload)
        elif full is not None:
            full.line.append(workload)
        else:
            starts.append(workload)
            for room in rooms:
                room.holders.append(Holder(name=workload.name, devices=needs))
    state = f"{max(0, cluster.free)} of {total} {'is' if cluster.free == 1 else 'are'} free{_held(cluster)}"
    sentences |= _told(cluster.line, state)
    for name, room in projects.items():
        sentences |= _told(room.line, f"project {name} has {max(0, room.free)} of {room.whole} free{_held(room)}")
    return Picked(starts=tuple(starts), sentences=sentences)


def _outside(workload: Workload, total: int, project: _Room | None, now: datetime) -> str | None:
    """Why it is in no line; None: it is in one, or may start."""
    needs = workload.submission.devices
    if _backs_off(workload, now):
        return f"tries again at {workload.not_before:%H:%M:%S} UTC, after a back-off"
    if needs > total:
        return f"needs {_devices(needs)}, and the cluster has {total}"
    if project is not None and needs > project.whole:
        quota = f"the quota of project {workload.project} is {project.whole}"
        return f"needs {_devices(needs)}, and {quota}: it cannot start before that is raised"
    return None


def _backs_off(workload: Workload, now: datetime) -> bool:
    """No back-off is longer than the longest: what ends later than that was decided before the clock was set back."""
    until = workload.not_before
    return until is not None and now < until <= now + timedelta(seconds=MAX_BACKOFF)


def _place(workload: Workload) -> tuple[int, bool, datetime, str]:
    priority = PRIORITIES.index(workload.submission.spec.priority_class or PRIORITY)
    return -priority, workload.attempts == 0, workload.created_at, workload.id


def _told(line: list[Workload], state: str) -> dict[str, str]:
    return {workload.id: _sentence(workload, place, state, line[0]) for place, workload in enumerate(line, start=1)}


def _sentence(workload: Workload, place: int, state: str, first: Workload) -> str:
    needs = f"needs {_devices(workload.submission.devices)}"
    if place == 1:
        return f"{needs}, {state}; next in line"
    if place > SHOWN_PLACES:
        return f"{needs}; {SHOWN_PLACES} workloads or more are before it in line"
    behind = f", behind {first.name} which needs {first.submission.devices}" if place == 2 else ""
    return f"{needs}, {state}; {_ordinal(place)} in line{behind}"


def _held(room: _Room) -> str:
    ours = [f"{holder.name} holds {holder.devices}" for holder in room.holders if holder.devices]
    shown = ours[:SHOWN_HOLDERS]
    if len(ours) > SHOWN_HOLDERS:
        shown.append(f"{len(ours) - SHOWN_HOLDERS} more hold the rest")
    if room.foreign:
        others = "; ".join(dict.fromkeys(text for text in room.foreign[:SHOWN_HOLDERS] if text))
        shown.append(f"{len(room.foreign)} not ours" + (f": {others}" if others else ""))
    return f" ({', '.join(shown)})" if shown else ""


def _devices(number: int) -> str:
    return "1 device" if number == 1 else f"{number} devices"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
