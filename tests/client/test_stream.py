"""Streams are taken up where they broke: no event is lost and none comes twice."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from torchyard.client.http import Address, Server
from torchyard.client.stream import events
from torchyard.domain.errors import NotFound, Unavailable

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(text: str) -> bytes:
    raw = text.encode()
    return f"{len(raw):x}\r\n".encode() + raw + b"\r\n"


def event(name: str, identity: int | None, data: object) -> str:
    ident = f"id: {identity}\n" if identity is not None else ""
    return f"event: {name}\n{ident}data: {json.dumps(data)}\n\n"


def refused(status: str, body: object) -> bytes:
    raw = json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


@contextmanager
def connections(*answers: list[bytes]) -> Iterator[tuple[Server, list[str]]]:
    """A peer that gives one list of pieces to each connection and then closes it."""
    heads: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for pieces in answers:
            connection, _ = listener.accept()
            with connection:
                heads.append(connection.recv(65536).decode())
                for piece in pieces:
                    connection.sendall(piece)

    thread = threading.Thread(target=serve)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield Server(lambda: Address(url, "secret")), heads
    finally:
        thread.join(10)
        listener.close()
        assert not thread.is_alive()


def last_ids(heads: list[str]) -> list[str | None]:
    found = []
    for head in heads:
        lines = [line for line in head.splitlines() if line.startswith("Last-Event-ID: ")]
        found.append(lines[0].removeprefix("Last-Event-ID: ") if lines else None)
    return found


def test_events_come_in_order_until_the_end() -> None:
    text = ": alive\n\n" + event("line", 1, {"text": "ä"}) + event("line", 2, {"text": "b"}) + event("end", None, {})
    raw = chunk(text)
    # Cut in the middle of everything, also of a letter.
    pieces = [HEAD, *(bytes([byte]) for byte in raw)]
    with connections(pieces) as (server, _):
        seen = list(events(server, "/x"))
    assert [(e.name, e.id) for e in seen] == [("line", "1"), ("line", "2"), ("end", None)]
    assert seen[0].data == {"text": "ä"}


def test_cut_stream_goes_on_behind_the_last_event() -> None:
    whole = chunk(event("line", 1, "a"))
    torn = b"40\r\nevent: line\nid: 2\nda"
    with connections(
        [HEAD, whole, torn],
        [HEAD, chunk(event("line", 2, "b")), END],
        [HEAD, chunk(event("line", 3, "c") + event("end", None, {})), END],
    ) as (server, heads):
        seen = list(events(server, "/x"))
    assert [e.data for e in seen if e.name == "line"] == ["a", "b", "c"]
    assert last_ids(heads) == [None, "1", "2"]


def test_away_and_back_are_told_once_each() -> None:
    told: list[bool] = []
    with connections(
        [HEAD, chunk(event("line", 1, "a"))],
        [],
        [],
        [HEAD, chunk(event("end", None, {})), END],
    ) as (server, _):
        list(events(server, "/x", away=told.append))
    assert told == [True, False]


def test_stream_with_an_end_of_its_own_is_not_taken_up_again() -> None:
    with connections([HEAD, chunk(event("line", 1, "a")), END]) as (server, _):
        assert [e.data for e in events(server, "/x", endless=False)] == ["a"]


def test_refusal_is_raised_at_once() -> None:
    with (
        connections([refused("404 Not Found", {"code": 404, "message": "gone"})]) as (server, _),
        pytest.raises(NotFound, match="gone"),
    ):
        list(events(server, "/x"))


def test_error_event_is_raised() -> None:
    body = {"code": 404, "message": "gone"}
    with connections([HEAD, chunk(event("error", None, body)), END]) as (server, _), pytest.raises(NotFound):
        list(events(server, "/x"))


def test_patience_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Unavailable):
        list(events(Server(lambda: Address(url, "t")), "/x", patience=0.1))
