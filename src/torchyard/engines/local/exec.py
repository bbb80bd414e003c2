"""A command beside the ranks: asked of the keeper over its socket, with our ends of its files passed along."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import socket
import struct
import termios
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from torchyard.engines.engine import CannotStart

CHUNK = 64 * 1024
PATIENCE = 10.0
"""Seconds in which a keeper must have answered."""
LOST = 137


class LocalExec:
    """One command. Standard input and output are pipes, or one terminal. Waits on files, never in a thread: there may
    be many, and most of them are silent."""

    def __init__(self, connection: socket.socket, stdin: int, outputs: dict[int, int], tty: bool) -> None:
        self._connection = connection
        self._stdin: int | None = stdin
        self._outputs = outputs
        self._tty = tty
        self._code: int | None = None
        self._heard = b""
        self._open = True
        self._writing = asyncio.Lock()
        self._waits: dict[asyncio.Future[None], Callable[[], object]] = {}
        for handle in (connection.fileno(), stdin, *outputs.values()):
            os.set_blocking(handle, False)

    async def write(self, data: bytes) -> None:
        """Bytes for its standard input; empty bytes close it."""
        async with self._writing:
            if self._stdin is None:
                return
            if not data and not self._tty:
                os.close(self._stdin)
                self._stdin = None
                return
            await self._send(self._stdin, data or b"\x04")

    async def _send(self, handle: int, data: bytes) -> None:
        while data and self._open:
            try:
                data = data[os.write(handle, data) :]
            except BlockingIOError:
                await self._ready(handle, writing=True)
            except OSError:
                return

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """(1, stdout bytes) and (2, stderr bytes) until it ends."""
        reads = {asyncio.create_task(self._read(handle)): stream for stream, handle in self._outputs.items()}
        try:
            while reads:
                done, _ = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
                for read in done:
                    stream = reads.pop(read)
                    if read.result():
                        reads[asyncio.create_task(self._read(self._outputs[stream]))] = stream
                        yield stream, read.result()
        finally:
            for read in reads:
                read.cancel()

    async def _read(self, handle: int) -> bytes:
        """Some bytes; none at the end. A terminal ends with an error once nobody has its other side."""
        while self._open:
            try:
                return os.read(handle, CHUNK)
            except BlockingIOError:
                await self._ready(handle)
            except OSError:
                break
        return b""

    async def _ready(self, handle: int, writing: bool = False) -> None:
        """Until it can be read or written, or we are closed."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        (loop.add_writer if writing else loop.add_reader)(handle, _wake, ready)
        self._waits[ready] = lambda: (loop.remove_writer if writing else loop.remove_reader)(handle)
        try:
            await ready
        finally:
            forget = self._waits.pop(ready, None)
            if forget is not None:
                forget()

    async def resize(self, rows: int, columns: int) -> None:
        """Size of its terminal."""
        if self._tty and self._open:
            _set_size(self._outputs[1], rows, columns)

    async def wait(self) -> int:
        """Its exit code."""
        while self._code is None:
            said = await self.hear()
            if "exit" in said or not said:
                self._code = int(said.get("exit", LOST))
        return self._code

    async def hear(self) -> dict[str, Any]:
        """The keeper's next word; nothing when it has hung up."""
        while b"\n" not in self._heard:
            data = await self._read(self._connection.fileno())
            if not data:
                return {}
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    async def close(self) -> None:
        """End it if it still runs."""
        if not self._open:
            return
        self._open = False
        while self._waits:
            ready, forget = self._waits.popitem()
            forget()
            _wake(ready)
        self._connection.close()
        for handle in {*self._outputs.values(), *([self._stdin] if self._stdin is not None else [])}:
            os.close(handle)
        self._stdin = None


async def start(replica: Path, argv: tuple[str, ...], tty: bool, rows: int, columns: int) -> LocalExec:
    """Ask the keeper of a running replica. Raises CannotStart."""
    connection = await asyncio.to_thread(_dial, replica)
    if tty:
        ours, theirs = pty.openpty()
        _set_size(ours, rows, columns)
        passed, mine = [theirs, theirs, theirs], ours
        outputs = {1: ours}
    else:
        pipes = [os.pipe() for _ in range(3)]
        passed = [pipes[0][0], pipes[1][1], pipes[2][1]]
        mine = pipes[0][1]
        outputs = {1: pipes[1][0], 2: pipes[2][0]}
    request = json.dumps(
        {"argv": list(argv), "tty": tty, "env": {"TERM": "xterm-256color"} if tty else {}, "cwd": None}
    )
    running = LocalExec(connection, mine, outputs, tty)
    said: dict[str, Any] = {}
    try:
        with contextlib.suppress(TimeoutError, OSError):
            connection.setblocking(True)
            socket.send_fds(connection, [request.encode() + b"\n"], passed)
            connection.setblocking(False)
            said = await asyncio.wait_for(running.hear(), PATIENCE)
    finally:
        for handle in set(passed):
            os.close(handle)
        if "pid" not in said:
            await running.close()
    if "pid" not in said:
        raise CannotStart(
            f"replica {replica.name} runs no command: {said.get('error', 'it does not answer')}", "does it still run?"
        )
    return running


def _dial(replica: Path) -> socket.socket:
    # A socket's path may have 107 bytes; through an open folder it is always short.
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        folder = os.open(replica / "run", os.O_RDONLY | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{folder}/keeper.sock")
        finally:
            os.close(folder)
    except OSError as problem:
        connection.close()
        raise CannotStart(
            f"replica {replica.name} cannot be reached: {problem.strerror}", "does it still run?"
        ) from problem
    return connection


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _set_size(handle: int, rows: int, columns: int) -> None:
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
