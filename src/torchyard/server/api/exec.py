"""A command beside the ranks, over a WebSocket. Binary: stream number and bytes; text: JSON for all else."""

import asyncio
import json
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.websockets import WebSocket, WebSocketDisconnect

from torchyard.control import exec as execs
from torchyard.domain.errors import Invalid, TorchyardError
from torchyard.engines.engine import Exec
from torchyard.policy.permissions import Action, Resource
from torchyard.server.deps import YardNow
from torchyard.server.errors import answer
from torchyard.server.permit import there

router = APIRouter(prefix="/workloads", tags=["exec"])

STDIN = 0
MAX_SIDE = 1000
"""Rows or columns of a terminal."""
Side = Annotated[int, Query(ge=1, le=MAX_SIDE)]


@router.websocket("/{workload_id}/exec", dependencies=[there(Resource.EXEC, Action.CREATE, trusted=True)])
async def run(
    socket: WebSocket,
    workload_id: str,
    yard: YardNow,
    argv: Annotated[list[str], Query(min_length=1, max_length=1000)],
    replica: Annotated[str | None, Query(max_length=64)] = None,
    tty: bool = False,
    rows: Side = 24,
    columns: Side = 80,
) -> None:
    """Run `argv` in a replica until it ends or the caller leaves."""
    try:
        command = await execs.open_exec(yard, workload_id, replica, tuple(argv), tty, rows, columns)
    except TorchyardError as error:
        # Refused before the upgrade, so that the caller gets an ordinary answer with a sentence.
        await socket.send_denial_response(answer(error))
        return
    try:
        await socket.accept()
        listening = asyncio.ensure_future(_listen(socket, command))
        talking = asyncio.ensure_future(_talk(socket, command))
        await asyncio.wait({listening, talking}, return_when=asyncio.FIRST_COMPLETED)
        for task in (listening, talking):
            task.cancel()
        results = await asyncio.gather(listening, talking, return_exceptions=True)
        await _finish(socket, results)
    finally:
        await command.close()


async def _listen(socket: WebSocket, command: Exec) -> None:
    """Hand on what the caller sends until it leaves."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        data = message.get("bytes")
        if data is None:
            await _order(message.get("text") or "", command)
        elif data[:1] == bytes((STDIN,)):
            # Empty bytes would close its input.
            if len(data) > 1:
                await command.write(data[1:])
        else:
            raise Invalid("a binary frame begins with byte 0 (stdin)")


async def _order(text: str, command: Exec) -> None:
    try:
        order = json.loads(text)
    except ValueError:
        raise Invalid("a text frame is a JSON object") from None
    match order:
        case {"resize": [int(rows), int(columns)]} if 0 < rows <= MAX_SIDE and 0 < columns <= MAX_SIDE:
            await command.resize(rows, columns)
        case {"eof": True}:
            await command.write(b"")
        case _:
            raise Invalid('a text frame is {"resize": [rows, columns]} or {"eof": true}')


async def _talk(socket: WebSocket, command: Exec) -> None:
    """Hand on what the command prints, then its exit code."""
    async for stream, data in command.output():
        await socket.send_bytes(bytes((stream,)) + data)
    await socket.send_text(json.dumps({"exit": await command.wait()}))
    await socket.close()


async def _finish(socket: WebSocket, results: Iterable[BaseException | None]) -> None:
    for result in results:
        match result:
            case TorchyardError():
                await socket.send_text(json.dumps({"error": result.message}))
                await socket.close(1008 if isinstance(result, Invalid) else 1011)
                return
            case None | asyncio.CancelledError() | WebSocketDisconnect():
                pass
            case _:
                raise result
