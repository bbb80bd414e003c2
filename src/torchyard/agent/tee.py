"""Copies of ranks' lines that torchrun puts on its own output: dropped where the rank's file has the same text. Knows
nothing of processes."""

from __future__ import annotations

import codecs
import io
import os

from .follow import RankFile

_CHUNK = 1 << 16


class _Copied:
    """How far the copies of one file have come. torchrun copies text: its line ends are "\\n", bad bytes replaced."""

    __slots__ = ("_ahead", "_decoder", "_fd", "_position")

    def __init__(self, path: str) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._position = 0
        self._ahead = b""

    def common(self, text: bytes) -> int:
        """How much of `text` is what comes next in the file."""
        self._fill(len(text))
        if not text.startswith(b"\n"):  # a "\r\n" may have been copied as one line end or as two
            self._ahead = self._ahead.lstrip(b"\n")
            self._fill(len(text))
        if self._ahead.startswith(text):
            return len(text)
        same = min(len(text), len(self._ahead))
        return next((index for index in range(same) if text[index] != self._ahead[index]), same)

    def find(self, text: bytes) -> int:
        """Where `text` stands further on, counted to its end; 0 when it does not."""
        self._fill(_CHUNK)
        return self._ahead.find(text) + len(text) if text in self._ahead else 0

    def skip(self, count: int) -> None:
        """These bytes were copied."""
        self._ahead = self._ahead[count:]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _fill(self, count: int) -> None:
        while len(self._ahead) < count:
            data = os.pread(self._fd, _CHUNK, self._position)
            if not data:
                break
            self._position += len(data)
            self._ahead += self._decoder.decode(data).encode("utf-8", "replace")


class Copies:
    """Tells copies from other text. A copied line may break off where the rank had written no line end yet, and the
    launcher's own words then follow on the same line: those must not be lost."""

    def __init__(self) -> None:
        self._copied: dict[str, _Copied] = {}
        self._matched = 0
        self._verdict: bool | None = None

    def foreign(self, text: bytes, first: bool, files: list[RankFile]) -> bytes:
        """What in a piece behind a rank's prefix is not from that rank. `first`: the prefix stood right before."""
        if first:
            self._matched, self._verdict = 0, None
        if self._verdict is None and text:
            text = text[self._copied_part(text, files) :]
            # Nothing in common from the prefix on: torchrun read the bytes in another way. It is a copy all the same.
            self._verdict = None if not text else self._matched > 0
        return text if self._verdict and text != b"\n" else b""

    def _copied_part(self, text: bytes, files: list[RankFile]) -> int:
        candidates = [copied for copied in map(self._of, reversed(files)) if copied is not None]
        shared = [copied.common(text) for copied in candidates]
        count = max(shared, default=0)
        if count:
            candidates[shared.index(count)].skip(count)
        elif not self._matched:
            for copied in candidates:
                copied.skip(copied.find(text))
        self._matched += count
        return count

    def _of(self, file: RankFile) -> _Copied | None:
        if file.path not in self._copied:
            try:
                self._copied[file.path] = _Copied(file.path)
            except OSError:
                return None
        return self._copied[file.path]

    def close(self) -> None:
        """Let go of all files."""
        for copied in self._copied.values():
            copied.close()
        self._copied.clear()
