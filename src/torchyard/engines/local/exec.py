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
from collections.abc import AsyncIterator
from pathlib import Path

from torchyard.engines.engine import CannotStart

CHUNK = 64 * 1024


class LocalExec:
    """One command. Standard input and output are pipes, or one terminal."""

    def __init__(self, connection: socket.socket, stdin: int, outputs: dict[int, int], tty: bool) -> None:
        self._connection = connection
        self._stdin: int | None = stdin
        self._outputs = outputs
        self._tty = tty
        self._code: int | None = None
        self._queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(maxsize=64)

    async def write(self, data: bytes) -> None:
        """Bytes for its standard input; empty bytes close it."""
        if self._stdin is None:
            return
        if not data and not self._tty:
            os.close(self._stdin)
            self._stdin = None
            return
        with contextlib.suppress(OSError):
            await asyncio.to_thread(_write_all, self._stdin, data or b"\x04")

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """(1, stdout bytes) and (2, stderr bytes) until it ends."""
        readers = [asyncio.create_task(self._pump(stream, handle)) for stream, handle in self._outputs.items()]
        left = len(readers)
        while left:
            stream, data = await self._queue.get()
            if data:
                yield stream, data
            else:
                left -= 1

    async def _pump(self, stream: int, handle: int) -> None:
        while True:
            try:
                data = await asyncio.to_thread(os.read, handle, CHUNK)
            except OSError:
                data = b""
            await self._queue.put((stream, data))
            if not data:
                return

    async def resize(self, rows: int, columns: int) -> None:
        """Size of its terminal."""
        if self._tty:
            _set_size(self._outputs[1], rows, columns)

    async def wait(self) -> int:
        """Its exit code."""
        if self._code is None:
            loop = asyncio.get_running_loop()
            text = b""
            while self._code is None:
                data = await loop.sock_recv(self._connection, 4096)
                if not data:
                    self._code = 137
                    break
                text += data
                for line in text.split(b"\n")[:-1]:
                    said = json.loads(line)
                    if "exit" in said:
                        self._code = int(said["exit"])
                text = text.rpartition(b"\n")[2]
        return self._code

    async def close(self) -> None:
        """End it if it still runs."""
        self._connection.close()
        for handle in {*self._outputs.values(), *([self._stdin] if self._stdin is not None else [])}:
            with contextlib.suppress(OSError):
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
    try:
        socket.send_fds(connection, [request.encode() + b"\n"], passed)
    finally:
        for handle in set(passed):
            os.close(handle)
    connection.setblocking(False)
    return LocalExec(connection, mine, outputs, tty)


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


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _set_size(handle: int, rows: int, columns: int) -> None:
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
