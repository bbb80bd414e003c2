"""Server-sent events: ids are cursors, a quiet stream shows signs of life, a client that left takes everything with it.

Knows nothing of what is sent.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from torchyard.domain.errors import TorchyardError
from torchyard.server.errors import shape

BUFFER = 256 * 1024
"""Bytes that wait for a slow reader before the source is made to wait."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One event of a stream. `id` is where a reader that saw it goes on."""

    event: str
    data: Mapping[str, Any]
    id: str | None = None

    def encode(self) -> bytes:
        """As it goes over the wire. JSON has no line ends of its own, so one data line is enough."""
        ident = f"id: {self.id}\n" if self.id is not None else ""
        return f"event: {self.event}\n{ident}data: {json.dumps(self.data)}\n\n".encode()


@dataclass(slots=True)
class _Pipe:
    """What was produced and not yet sent."""

    chunks: list[bytes] = field(default_factory=list)
    size: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    emptied: asyncio.Event = field(default_factory=asyncio.Event)

    async def put(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self.size += len(chunk)
        self.changed.set()
        if self.size >= BUFFER:
            self.emptied.clear()
            await self.emptied.wait()

    def take(self) -> bytes:
        taken = b"".join(self.chunks)
        self.chunks.clear()
        self.size = 0
        self.changed.clear()
        self.emptied.set()
        return taken


class EventStream(Response):
    """Sends events as they come until there are no more, the client is gone or the server closes."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[Sent, None], heartbeat: float, closing: asyncio.Event) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.events = events
        self.heartbeat = heartbeat
        self.closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        pipe = _Pipe()
        source: asyncio.Future[Any] = asyncio.ensure_future(_fill(pipe, self.events))
        sender = asyncio.ensure_future(self._drain(pipe, source, send))
        leaving = asyncio.ensure_future(_disconnected(receive))
        closing = asyncio.ensure_future(self.closing.wait())
        tasks: tuple[asyncio.Future[Any], ...] = (source, sender, leaving, closing)
        try:
            await asyncio.wait({sender, leaving, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in (source, sender):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        if not leaving.done() or leaving.cancelled():
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self, pipe: _Pipe, source: asyncio.Future[Any], send: Send) -> None:
        changed: asyncio.Future[Any] = asyncio.ensure_future(pipe.changed.wait())
        try:
            while True:
                await asyncio.wait({changed, source}, timeout=self.heartbeat, return_when=asyncio.FIRST_COMPLETED)
                # Asked before taking: what came after the answer comes round once more.
                over = source.done()
                chunk = pipe.take()
                if chunk or not over:
                    await send({"type": "http.response.body", "body": chunk or b": alive\n\n", "more_body": True})
                if over:
                    return
                if changed.done():
                    changed = asyncio.ensure_future(pipe.changed.wait())
        finally:
            changed.cancel()


async def _fill(pipe: _Pipe, events: AsyncGenerator[Sent, None]) -> None:
    async with contextlib.aclosing(events):
        try:
            async for event in events:
                await pipe.put(event.encode())
        except TorchyardError as error:
            # The status is out already; an error that the user can mend is the stream's last event.
            await pipe.put(Sent("error", shape(error)).encode())


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
