"""JSON lines over a Unix socket, with passed file descriptors, never blocking. Does not know what is said."""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct

_MOST_FDS = 8


class Channel:
    """One end of a connection. What cannot be sent yet waits here; `events` says what to wait for."""

    __slots__ = ("_in", "_out", "closed", "fds", "socket")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.closed = False
        self.fds: list[int] = []
        self._in = b""
        self._out = bytearray()

    @property
    def events(self) -> int:
        """What a selector should wait for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)

    def send(self, message: dict[str, object]) -> None:
        """Send one message, now or as soon as the other side reads."""
        self._out += json.dumps(message).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what waits."""
        try:
            while self._out and not self.closed:
                del self._out[: self.socket.send(self._out)]
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()

    def receive(self) -> list[dict[str, object]]:
        """The messages that have come; `closed` is set when the other side is gone."""
        while not self.closed:
            try:
                data, notes, _, _ = self.socket.recvmsg(
                    65536, socket.CMSG_SPACE(4 * _MOST_FDS), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                break
            except OSError:
                data, notes = b"", []
            for level, kind, raw in notes:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self.fds.extend(struct.unpack(f"{len(raw) // 4}i", raw[: len(raw) // 4 * 4]))
            self._in += data
            self.closed = not data
        *lines, self._in = self._in.split(b"\n")
        return [message for message in map(_parse, lines) if message is not None]

    def close(self) -> None:
        """Let go of the connection and of passed files that nobody took."""
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()
        self.closed = True
        self.socket.close()


def _parse(line: bytes) -> dict[str, object] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
