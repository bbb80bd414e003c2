"""Bytes on their way: copied to a file that appears whole or not at all, with a meter for large ones on a terminal."""

import http.client
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchyard.domain.errors import Unavailable
from torchyard.domain.quantities import show_size

LARGE = 16 << 20
_PIECE = 1 << 20
_EVERY = 0.2


def copied(response: http.client.HTTPResponse, aim: Path, size: int) -> None:
    """Write an answer to a file."""
    aim.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=aim.parent, prefix=f".{aim.name}.", delete=False) as part:
        path = Path(part.name)
        try:
            for piece in metered(_pieces(response), aim.name, size):
                part.write(piece)
            part.flush()
            path.chmod(0o644)
            path.replace(aim)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def pieces_of(path: Path) -> Iterator[bytes]:
    """A file, bit by bit."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def metered(pieces: Iterable[bytes], name: str, size: int) -> Iterator[bytes]:
    """The same pieces; how far they are is shown on a terminal when they are many."""
    shown = sys.stderr.isatty() and size > LARGE
    begin = last = time.monotonic()
    done = 0
    for piece in pieces:
        yield piece
        done += len(piece)
        now = time.monotonic()
        if shown and now - last > _EVERY:
            last = now
            speed = show_size(done / (now - begin))
            sys.stderr.write(f"\r{name}  {show_size(done)} of {show_size(size)}  {speed}/s\x1b[K")
            sys.stderr.flush()
    if shown:
        sys.stderr.write("\r\x1b[K")


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := response.read(_PIECE):
            yield piece
    except (http.client.HTTPException, OSError) as error:
        raise Unavailable(f"the download broke off: {error or type(error).__name__}", "try again") from None
    if response.length:
        raise Unavailable(f"the download broke off {response.length} bytes before its end", "try again")
