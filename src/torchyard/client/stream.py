"""Server-sent events that survive a lost connection: the last id is sent again, and nothing comes twice.

Knows no meaning of an event but `end` and `error`.
"""

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torchyard.client.http import Server, failure
from torchyard.domain.errors import Unavailable

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name, its id (a cursor) and its JSON."""

    name: str
    id: str | None
    data: Any


def events(
    server: Server,
    path: str,
    query: Mapping[str, object] | None = None,
    *,
    endless: bool = True,
    patience: float = 10.0,
    away: Callable[[bool], None] = lambda gone: None,
) -> Iterator[ServerEvent]:
    """All events until `end`, which is the last one.

    endless: a stream that closes without `end` is taken up again; otherwise its close is its end.
    patience: seconds without a server until we give up.
    away: called with True once when it goes, with False when it is back.
    """
    last: str | None = None
    lost: float | None = None
    pause = _FIRST_PAUSE
    while True:
        try:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
            with server.open("GET", path, query, headers) as response:
                if lost is not None:
                    away(False)
                lost, pause = None, _FIRST_PAUSE
                for event in read_events(response):
                    if event.name == "error":
                        raise failure(int(event.data.get("code", 503)), json.dumps(event.data).encode())
                    last = event.id or last
                    yield event
                    if event.name == "end":
                        return
            if not endless:
                return
        except (Unavailable, http.client.HTTPException, OSError) as error:
            if lost is None:
                lost = time.monotonic()
                away(True)
            elif time.monotonic() - lost > patience:
                raise (
                    error if isinstance(error, Unavailable) else Unavailable(f"the server went away: {error}")
                ) from None
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
        _relocate(server)


def read_events(response: http.client.HTTPResponse) -> Iterator[ServerEvent]:
    """The events of one response. Raises IncompleteRead when it is cut off."""
    fields: dict[str, list[str]] = {}
    for line in _lines(response):
        if line:
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
        elif fields:
            if "data" in fields:
                identity = fields["id"][-1] if "id" in fields else None
                yield ServerEvent(fields.get("event", ["message"])[-1], identity, json.loads("\n".join(fields["data"])))
            fields = {}


def _lines(response: http.client.HTTPResponse) -> Iterator[str]:
    # read1, since readline of a chunked response takes a cut connection for its end.
    rest = b""
    while piece := response.read1(65536):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")


def _relocate(server: Server) -> None:
    try:
        server.relocate()
    except Unavailable:
        # Nobody is there yet; the next round asks again.
        return
