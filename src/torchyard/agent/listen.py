"""Unix sockets that only their owner may use. Knows no protocol."""

from __future__ import annotations

import os
import socket
import time

_PATIENCE = 10.0


def listen(folder: int, name: str) -> socket.socket:
    """Listen under a name in an open folder, which becomes the working folder: the absolute path of a socket may be
    longer than a socket's name can be."""
    os.fchdir(folder)
    os.close(folder)
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listener.bind(name)
    finally:
        os.umask(mask)
    listener.listen(16)
    listener.setblocking(False)
    return listener


def connect(name: str) -> socket.socket:
    """Connect to a name in the working folder, where the other side may be about to listen."""
    until = time.monotonic() + _PATIENCE
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(name)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if time.monotonic() >= until:
                raise
            time.sleep(0.002)
