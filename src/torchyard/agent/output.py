"""Everything a replica says, into its log: two pipes and the files of its ranks. Knows no process."""

from __future__ import annotations

from .follow import Follower
from .lines import Lines, Parted, Piece
from .logfile import LogFile, Record
from .tee import Copies

_TAIL = 20
_PREFIX_WAIT = 1.0


class _Pipe:
    """What one pipe of the command has said so far. `ranks`: copies of ranks that have no file of their own."""

    __slots__ = ("copies", "kind", "last", "lines", "parted", "ranks", "tail")

    def __init__(self, kind: bytes) -> None:
        self.kind = kind
        self.parted = Parted()
        self.copies = Copies(kind)
        self.lines = Lines(kind)
        self.ranks: dict[int, Lines] = {}
        self.tail: list[bytes] = []
        self.last = 0.0


class Output:
    """Routes bytes to records. The caller says what came and what time it is."""

    def __init__(self, log: LogFile, follower: Follower) -> None:
        self._log = log
        self._follower = follower
        self._pipes = {kind: _Pipe(kind) for kind in (b"o", b"e")}

    @property
    def lost(self) -> int:
        """Lines that did not fit on the disk."""
        return self._log.lost

    @property
    def last_words(self) -> str:
        """The last lines on stderr: when a wrapper fails to start, its reason."""
        return b"\n".join(self._pipes[b"e"].tail).decode("utf-8", "replace")

    def learn(self, folder: str, rank: int) -> None:
        """A rank's process was found, with this log folder."""
        self._follower.learn(folder, rank)

    def feed(self, kind: bytes, data: bytes, now: float) -> None:
        """Bytes from the command's stdout (`o`) or stderr (`e`)."""
        pipe = self._pipes[kind]
        pipe.last = now
        self._write(self._route(pipe, pipe.parted.feed(data), now), now)

    def poll(self, now: float) -> None:
        """Time has passed: look at the ranks' files, let go of what waited."""
        records = self._follower.poll(now)
        for pipe in self._pipes.values():
            if now - pipe.last >= _PREFIX_WAIT:
                records += self._route(pipe, pipe.parted.flush(), now)
            records += _own(pipe, pipe.lines.tick(now))
            for rank, lines in pipe.ranks.items():
                records += _of_rank(rank, lines.tick(now))
        self._write(records, now)

    def finish(self, now: float) -> None:
        """Nobody writes any more: the rest of everything."""
        records = self._follower.finish(now)
        for pipe in self._pipes.values():
            records += self._route(pipe, pipe.parted.flush(), now)
            records += _own(pipe, pipe.lines.feed(pipe.copies.flush(), now))
            records += _own(pipe, pipe.lines.close(now))
            for rank, lines in pipe.ranks.items():
                records += _of_rank(rank, lines.close(now))
            pipe.copies.close()
        self._log.write(records, now, last=True)

    def _route(self, pipe: _Pipe, pieces: list[Piece], now: float) -> list[Record]:
        records: list[Record] = []
        for piece in pieces:
            if piece.rank is None:
                records += _own(pipe, pipe.lines.feed(piece.text, now))
                continue
            files = self._follower.of_rank(piece.rank)
            if not files:
                records += self._follower.discover(now)
                files = self._follower.of_rank(piece.rank)
            if files:
                rest = pipe.copies.foreign(piece.text, piece.first, files)
                records += _own(pipe, pipe.lines.feed(rest, now)) if rest else []
            else:
                lines = pipe.ranks.setdefault(piece.rank, Lines(pipe.kind))
                records += _of_rank(piece.rank, lines.feed(piece.text, now))
        return records

    def _write(self, records: list[Record], now: float) -> None:
        if records:
            self._log.write(records, now)


def _own(pipe: _Pipe, lines: list[tuple[bytes, bytes]]) -> list[Record]:
    pipe.tail = [*pipe.tail, *(text for kind, text in lines if len(kind) == 1)][-_TAIL:]
    return [Record(b"-", kind, text) for kind, text in lines]


def _of_rank(rank: int, lines: list[tuple[bytes, bytes]]) -> list[Record]:
    return [Record(b"%d" % rank, kind, text) for kind, text in lines]
