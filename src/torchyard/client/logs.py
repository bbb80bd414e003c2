"""Log lines of a workload over the API."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchyard.client.http import Server, quote
from torchyard.client.stream import ServerEvent, events


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChoice:
    """Which lines. `since` is seconds or an ISO time."""

    attempt: int | None = None
    replica: str | None = None
    rank: int | None = None
    since: str | None = None
    tail: int | None = None
    follow: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One record of a log. `kind`: o, e or t, then r (redraw) or c (continued)."""

    attempt: int
    replica: str
    rank: int | None
    kind: str
    at: str
    text: str


def read(
    server: Server,
    identity: str,
    choice: LogChoice,
    away: Callable[[bool], None] = lambda gone: None,
    patience: float = 10.0,
) -> Iterator[ServerEvent]:
    """`line` events in order, then `end` if the workload is over. Following goes on until it is."""
    query = {
        "attempt": choice.attempt,
        "replica": choice.replica,
        "rank": choice.rank,
        "since": choice.since,
        "tail": choice.tail,
        "follow": choice.follow,
    }
    return events(
        server, f"/workloads/{quote(identity)}/logs", query, endless=choice.follow, away=away, patience=patience
    )


def line_of(event: ServerEvent) -> Line:
    """The record in a `line` event."""
    data = event.data
    rank = data.get("rank")
    return Line(
        attempt=int(data["attempt"]),
        replica=str(data["replica"]),
        rank=None if rank in (None, "-") else int(rank),
        kind=str(data.get("kind") or "o"),
        at=str(data.get("at", "")),
        text=str(data.get("text", "")),
    )
