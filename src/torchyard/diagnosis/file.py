"""A file to be looked into: seekable, maybe hostile, maybe being written. Knows no format."""

from typing import Protocol

CHUNK = 1024 * 1024


class Readable(Protocol):
    """A file opened for reading."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...


class Broken(Exception):
    """Why a file is not whole, as a sentence."""


def exactly(file: Readable, offset: int, length: int) -> bytes:
    """So many bytes from there. Raises Broken when the file has become shorter."""
    file.seek(offset)
    parts = []
    while length > 0:
        part = file.read(min(length, CHUNK))
        if not part:
            raise Broken("the file became shorter while it was read: it may just be being written")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
