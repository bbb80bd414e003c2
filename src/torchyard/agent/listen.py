"""Unix sockets, for those whose folder they lie in. Knows no protocol."""

from __future__ import annotations

import os
import socket
import time

_PATIENCE = 10.0


def listen(folder: int, name: str) -> socket.socket:
    """Listen under a name in an open folder, which becomes the working folder: the absolute path of a socket may be
    longer than a socket's name can be. Whoever may write in the folder may connect: the other side of a container's
    wall may be another user."""
    os.fchdir(folder)
    for_all = os.fstat(folder).st_mode & 0o002
    os.close(folder)
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o111 if for_all else 0o177)
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
