"""Follows the files that torchrun's ranks write (PET_LOG_DIR). Does not know where the lines go."""

from __future__ import annotations

import os

from .kernel import free_blocks
from .lines import Lines
from .logfile import Record

_CHUNK = 1 << 18
_FAIR = 1 << 22
_FREE_EVERY = 1 << 20
_PATIENCE = 0.5
_SETTLED = 2.0
_STREAMS = {"stdout.log": b"o", "stderr.log": b"e"}


class RankFile:
    """One file of one rank. `folder` is run/attempt/local rank; `rank` is None until the global rank is known."""

    __slots__ = ("fd", "folder", "freed", "kind", "lines", "path", "position", "rank", "seen_at")

    def __init__(self, path: str, folder: str, kind: bytes, fd: int, now: float) -> None:
        self.path = path
        self.folder = folder
        self.kind = kind
        self.fd = fd
        self.position = 0
        self.freed = 0
        self.rank: int | None = None
        self.lines = Lines(kind)
        self.seen_at = now

    @property
    def local_rank(self) -> int:
        """Its number within the replica."""
        return int(self.folder.rsplit("/", 1)[-1])

    def succeeds(self, other: RankFile) -> bool:
        """It belongs to the same torchrun, rank and stream as the other, after a restart."""
        mine, others = self.folder.split("/"), other.folder.split("/")
        return mine[0] == others[0] and mine[1] != others[1] and mine[2] == others[2] and self.kind == other.kind


class Follower:
    """All rank files of a replica. `first_rank`: the global rank of its local rank 0, unless its processes tell.
    `sole`: nobody else reads the files, so the blocks of what was read are given back to the disk."""

    def __init__(self, root: str, first_rank: int, sole: bool) -> None:
        self._root = root
        self._first_rank = first_rank
        self._sole = sole
        self._known: dict[str, int] = {}
        self._files: dict[str, RankFile] = {}
        self._names: dict[str, tuple[int, float, list[str]]] = {}

    def learn(self, folder: str, rank: int) -> None:
        """A rank's process was found: this is the global rank of what stands in that folder."""
        if folder:
            self._known[folder] = rank

    def of_rank(self, rank: int) -> list[RankFile]:
        """The files of a rank so far, oldest first."""
        return [file for file in self._files.values() if self._rank_of(file) == rank]

    def discover(self, now: float) -> list[Record]:
        """Look for new files. The lines of the files that they succeed end here."""
        out: list[Record] = []
        for run in self._listed(self._root, now):
            for attempt in self._listed(f"{self._root}/{run}", now):
                if attempt.startswith("attempt_"):
                    for local in self._listed(f"{self._root}/{run}/{attempt}", now):
                        if local.isdecimal():
                            self._open_folder(f"{run}/{attempt}/{local}", out, now)
        return out

    def poll(self, now: float) -> list[Record]:
        """What the ranks have written since."""
        out = self.discover(now)
        for path, file in list(self._files.items()):
            if self._settle(file, now):
                self._read(file, out, now, _FAIR)
                _put(file, out, file.lines.tick(now))
            if file.fd >= 0 and os.fstat(file.fd).st_nlink == 0:
                self._end(file, out, now)
                del self._files[path]
        return out

    def finish(self, now: float) -> list[Record]:
        """The rest of everything, when nobody writes any more."""
        out = self.discover(now)
        for file in self._files.values():
            self._end(file, out, now)
        return out

    def _listed(self, folder: str, now: float) -> list[str]:
        """Names in a folder, listed again only when it has changed, or changed just before the last time."""
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            changed = os.fstat(fd).st_mtime_ns
            before, listed_at, names = self._names.get(folder, (-1, 0.0, []))
            if changed != before or listed_at - changed / 1e9 < _SETTLED:
                with os.scandir(fd) as entries:
                    names = sorted(entry.name for entry in entries)
                self._names[folder] = (changed, now, names)
        finally:
            os.close(fd)
        return names

    def _open_folder(self, folder: str, out: list[Record], now: float) -> None:
        for name, kind in _STREAMS.items():
            path = f"{self._root}/{folder}/{name}"
            if path in self._files:
                continue
            try:
                flags = os.O_RDWR if self._sole else os.O_RDONLY
                fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            file = RankFile(path, folder, kind, fd, now)
            for older in self._files.values():
                if file.succeeds(older):
                    self._end(older, out, now)
                elif older.kind == kind and older.local_rank == file.local_rank and older.fd >= 0:
                    self._read(older, out, now, _FAIR)
                    _put(older, out, older.lines.close(now))
            self._files[path] = file

    def _settle(self, file: RankFile, now: float) -> bool:
        """Is the rank known? After a moment without a word from its process it is computed."""
        if file.rank is None and (file.folder in self._known or now - file.seen_at >= _PATIENCE):
            file.rank = self._rank_of(file)
        return file.rank is not None

    def _rank_of(self, file: RankFile) -> int:
        if file.rank is not None:
            return file.rank
        return self._known.get(file.folder, self._first_rank + file.local_rank)

    def _read(self, file: RankFile, out: list[Record], now: float, most: int) -> None:
        if file.fd < 0:
            return
        size = os.fstat(file.fd).st_size
        file.position = min(file.position, size)
        end = min(size, file.position + most) if most else size
        while file.position < end:
            try:
                data = os.pread(file.fd, min(_CHUNK, end - file.position), file.position)
            except OSError:  # a broken disk: the training goes on
                break
            if not data:
                break
            file.position += len(data)
            _put(file, out, file.lines.feed(data, now))
        if self._sole and file.position - file.freed >= _FREE_EVERY:
            free_blocks(file.fd, file.position)
            file.freed = file.position

    def _end(self, file: RankFile, out: list[Record], now: float) -> None:
        """Read it to its end, once and for all."""
        if file.fd < 0:
            return
        file.rank = self._rank_of(file)
        self._read(file, out, now, 0)
        _put(file, out, file.lines.close(now))
        os.close(file.fd)
        file.fd = -1


def _put(file: RankFile, out: list[Record], lines: list[tuple[bytes, bytes]]) -> None:
    rank = b"%d" % file.rank if file.rank is not None else b"-"
    out.extend(Record(rank, kind, text) for kind, text in lines)
