"""Server-sent events on a real socket: heartbeats, cursors, and nothing left behind by a client that went."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from tests.server.serving import serving

from torchyard.domain.errors import Invalid
from torchyard.server.stream import BUFFER, EventStream, Sent


@dataclass
class Source:
    """A source that a test holds in its hands."""

    closing: asyncio.Event = field(default_factory=asyncio.Event)
    started: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    made: int = 0

    async def quiet(self) -> AsyncGenerator[Sent, None]:
        try:
            yield Sent("line", {"n": 1}, "a:1")
            self.started.set()
            await asyncio.Event().wait()
        finally:
            self.left.set()

    async def endless(self) -> AsyncGenerator[Sent, None]:
        try:
            while True:
                self.made += 1
                self.started.set()
                yield Sent("line", {"text": "x" * 1000})
        finally:
            self.left.set()

    async def some(self) -> AsyncGenerator[Sent, None]:
        for n in range(3):
            yield Sent("line", {"n": n, "text": "ä\nb"}, str(n))

    async def mended(self) -> AsyncGenerator[Sent, None]:
        yield Sent("line", {"n": 0})
        raise Invalid("that is no cursor", "send one that you got")


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def url(source: Source) -> Iterator[str]:
    async def stream(request: Request) -> EventStream:
        return EventStream(getattr(source, request.path_params["kind"])(), 0.05, source.closing)

    async def close(request: Request) -> EventStream:
        source.closing.set()
        return EventStream(source.some(), 1, asyncio.Event())

    with serving(Starlette(routes=[Route("/close", close), Route("/{kind}", stream)])) as address:
        yield address


def test_events_carry_names_ids_and_one_line_of_json(url: str) -> None:
    answer = httpx.get(f"{url}/some")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.split("\n\n")[:2] == [
        f'event: line\nid: {n}\ndata: {{"n": {n}, "text": "\\u00e4\\nb"}}' for n in range(2)
    ]


def test_a_quiet_stream_shows_signs_of_life(url: str) -> None:
    with httpx.stream("GET", f"{url}/quiet") as answer:
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(4)] == ["event: line", "id: a:1", 'data: {"n": 1}', ""]
        assert [next(lines) for _ in range(4)] == [": alive", "", ": alive", ""]


def test_a_client_that_leaves_takes_its_source_with_it(url: str, source: Source) -> None:
    with httpx.stream("GET", f"{url}/quiet") as answer:
        lines = answer.iter_lines()
        next(lines)
        assert source.started.wait(5)
        assert not source.left.is_set()
    assert source.left.wait(5)


def test_a_slow_reader_makes_the_source_wait(url: str, source: Source) -> None:
    with httpx.stream("GET", f"{url}/endless") as answer:
        chunks = answer.iter_raw()
        next(chunks)
        seen = -1
        while seen != source.made:
            seen = source.made
            threading.Event().wait(0.2)
        # What the buffers of two sockets hold comes on top of ours.
        assert source.made < BUFFER / 1000 + 12_000
    assert source.left.wait(5)


def test_an_error_is_the_last_event(url: str) -> None:
    assert httpx.get(f"{url}/mended").text.endswith(
        'event: error\ndata: {"code": 400, "message": "that is no cursor", "details": "send one that you got"}\n\n'
    )


def test_a_closing_server_ends_its_streams(url: str, source: Source) -> None:
    with httpx.stream("GET", f"{url}/quiet") as answer:
        lines = answer.iter_lines()
        next(lines)
        httpx.get(f"{url}/close")
        assert all(line in ("", ": alive") or ":" in line for line in lines)
    assert source.left.wait(5)
