"""The log of a replica: one record a line, written in place, true also when the disk is full. Knows no streams."""

from __future__ import annotations

import os

_RETRY = 0.1


class Record:
    """One record: `rank` is a number or `-`; `kind` is `o`, `e` or `t` and then perhaps `r` or `c`."""

    __slots__ = ("kind", "rank", "text")

    def __init__(self, rank: bytes, kind: bytes, text: bytes) -> None:
        self.rank = rank
        self.kind = kind
        self.text = text

    def line(self, now: float) -> bytes:
        """As it stands in the file."""
        return b"%016d %b %b %b\n" % (int(now * 1e6), self.rank, self.kind, self.text)

    @property
    def stream(self) -> tuple[bytes, bytes]:
        """Whose it is."""
        return (self.rank, self.kind[:1])


class LogFile:
    """Appends records. What does not fit is dropped and counted; a mark says so where it would have stood."""

    __slots__ = ("_end", "_fd", "_gap", "_retry_at", "_torn", "_unfinished", "lost")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._end = os.fstat(fd).st_size
        self._gap = 0
        self._retry_at = 0.0
        self._unfinished: set[tuple[bytes, bytes]] = set()
        self._torn = False
        self.lost = 0

    def write(self, records: list[Record], now: float, last: bool = False) -> None:
        """Append records. Never blocks on a full disk, never raises for one. `last`: try even if it was full."""
        if self._torn and now < self._retry_at and not last:
            self._lose(records, now)
            return
        records = (self._mend() if self._torn else []) + records
        lines = [record.line(now) for record in records]
        room = self._append(b"".join(lines))
        for index, line in enumerate(lines):
            if room < len(line):
                self._cut()
                self._lose(records[index:], now)
                return
            room -= len(line)
            self._end += len(line)
            self._wrote(records[index])
        self._torn = False

    def _mend(self) -> list[Record]:
        """What to write when space is back: ends for lines whose rest was lost, and the mark."""
        ends = [Record(rank, kind, b"") for rank, kind in sorted(self._unfinished)]
        if not self._gap:
            return ends
        what = "1 log line was" if self._gap == 1 else f"{self._gap} log lines were"
        return [*ends, Record(b"-", b"t", f"{what} lost here: no space on the disk".encode())]

    def _wrote(self, record: Record) -> None:
        if record.kind == b"t":
            self._gap = 0
        elif record.kind.endswith(b"c"):
            self._unfinished.add(record.stream)
        else:
            self._unfinished.discard(record.stream)

    def _lose(self, records: list[Record], now: float) -> None:
        count = sum(record.kind in (b"o", b"e") for record in records)
        self._gap += count
        self.lost += count
        if not self._torn or now >= self._retry_at:
            self._retry_at = now + _RETRY
        self._torn = True

    def _append(self, data: bytes) -> int:
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:  # no space, quota, file size limit, a broken disk: the training goes on without its log
            return done
        return done

    def _cut(self) -> None:
        try:
            os.ftruncate(self._fd, self._end)
        except OSError:
            return
