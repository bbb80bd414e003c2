"""Bytes of one stream into log lines, and one pipe into its ranks. Pure; knows no file and no clock of its own."""

from __future__ import annotations

import re

LONGEST = 65536
IDLE = 1.0
REDRAW_EVERY = 0.5

_PREFIX = re.compile(rb"\x1e\[(\d{1,7})\] ")
_PREFIX_BEGUN = re.compile(rb"\x1e(?:\[(?:\d{1,7}\]?)?)?\Z")


class Lines:
    """Splits one stream of one rank. Gives (kind, text) pairs: `o` or `e`, then `r` redraw or `c` to be continued."""

    __slots__ = ("_chained", "_held", "_kind", "_partial", "_redrawn_at", "_touched_at")

    def __init__(self, kind: bytes) -> None:
        self._kind = kind
        self._partial = b""
        self._touched_at = 0.0
        self._chained = False
        self._held = b""
        self._redrawn_at = float("-inf")

    def feed(self, data: bytes, now: float) -> list[tuple[bytes, bytes]]:
        """The records that `data` completes."""
        out: list[tuple[bytes, bytes]] = []
        data = self._partial + data
        self._touched_at = now
        if b"\r" not in data:
            *whole, rest = data.split(b"\n")
            for text in whole:
                self._plain(out, text)
        else:
            # A carriage return at the end may be the first half of a "\r\n".
            waiting = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(waiting)].replace(b"\r\n", b"\n")
            *whole, rest = data.split(b"\n")
            for text in whole:
                self._plain(out, self._redraws(out, text, now))
            rest = self._redraws(out, rest, now) + waiting
        self._partial = self._long(out, rest)
        return out

    def tick(self, now: float) -> list[tuple[bytes, bytes]]:
        """What has waited long enough: a held redraw, an unfinished line."""
        out: list[tuple[bytes, bytes]] = []
        if self._held and now - self._redrawn_at >= REDRAW_EVERY:
            self._release(out)
            self._redrawn_at = now
        if self._partial and now - self._touched_at >= IDLE:
            text = self._partial[:-1] if self._partial.endswith(b"\r") else self._partial
            cut = _whole_characters(text)
            if cut:
                self._continued(out, text[:cut])
                self._partial = self._partial[cut:]
        return out

    def close(self, now: float) -> list[tuple[bytes, bytes]]:
        """The rest, when nothing more will come."""
        out: list[tuple[bytes, bytes]] = []
        rest, self._partial = self._partial, b""
        if rest.endswith(b"\r"):
            self._redrawn_at = float("-inf")
            rest = self._redraws(out, rest, now)
        if rest or self._chained:
            self._plain(out, rest)
        self._release(out)
        return out

    def _plain(self, out: list[tuple[bytes, bytes]], text: bytes) -> None:
        self._release(out)
        if len(text) > LONGEST:
            text = self._long(out, text)
        out.append((self._kind, text))
        self._chained = False

    def _redraws(self, out: list[tuple[bytes, bytes]], text: bytes, now: float) -> bytes:
        """Handle all that carriage returns end in one line; what follows the last of them is given back."""
        *drawn, rest = text.split(b"\r")
        for picture in drawn:
            if self._chained or len(picture) > LONGEST:
                self._release(out)
                out.append((self._kind + b"r", self._long(out, picture)))
                self._chained = False
                self._redrawn_at = now
            elif picture and now - self._redrawn_at >= REDRAW_EVERY:
                self._held = picture
                self._release(out)
                self._redrawn_at = now
            elif picture:
                self._held = picture
        return rest

    def _long(self, out: list[tuple[bytes, bytes]], text: bytes) -> bytes:
        while len(text) > LONGEST + text.endswith(b"\r"):
            cut = _whole_characters(text[:LONGEST]) or LONGEST
            self._continued(out, text[:cut])
            text = text[cut:]
        return text

    def _continued(self, out: list[tuple[bytes, bytes]], text: bytes) -> None:
        self._release(out)
        out.append((self._kind + b"c", text))
        self._chained = True

    def _release(self, out: list[tuple[bytes, bytes]]) -> None:
        if self._held:
            out.append((self._kind + b"r", self._held))
            self._held = b""


class Piece:
    """Text from a pipe: of the launcher itself (`rank` None), or a copy of a rank's. `first`: a prefix stood before."""

    __slots__ = ("first", "rank", "text")

    def __init__(self, rank: int | None, text: bytes, first: bool) -> None:
        self.rank = rank
        self.text = text
        self.first = first


class Parted:
    """Splits a pipe at torchrun's rank prefix, which may stand anywhere in a line. A prefix reaches to the line end."""

    __slots__ = ("_owner", "_waiting")

    def __init__(self) -> None:
        self._owner: int | None = None
        self._waiting = b""

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces in `data`, in order. A prefix that is cut by its end waits for the rest."""
        data = self._waiting + data
        self._waiting = b""
        if self._owner is None and b"\x1e" not in data:
            return [Piece(None, data, False)] if data else []
        begun = _PREFIX_BEGUN.search(data)
        if begun is not None:
            data, self._waiting = data[: begun.start()], data[begun.start() :]
        return self._split(data)

    def flush(self) -> list[Piece]:
        """What waited, as ordinary text: it was no prefix after all."""
        data, self._waiting = self._waiting, b""
        return self._split(data)

    def _split(self, data: bytes) -> list[Piece]:
        pieces: list[Piece] = []
        at = 0
        first = False
        for prefix in _PREFIX.finditer(data):
            self._take(pieces, data[at : prefix.start()], first)
            self._owner = int(prefix.group(1))
            at = prefix.end()
            first = True
        self._take(pieces, data[at:], first)
        return pieces

    def _take(self, pieces: list[Piece], text: bytes, first: bool) -> None:
        if self._owner is not None:
            end = text.find(b"\n") + 1 or len(text)
            if text or first:
                pieces.append(Piece(self._owner, text[:end], first))
            if text[:end].endswith(b"\n"):
                self._owner = None
            text = text[end:]
        if text:
            pieces.append(Piece(None, text, False))


def _whole_characters(text: bytes) -> int:
    """Where to cut so that no UTF-8 character is torn; the whole length when the end is no begun character."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte >= 0xC0:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(text) - back if needs > back else len(text)
        if byte < 0x80:
            break
    return len(text)
