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
            try:
                data = os.pread(self._fd, _CHUNK, self._position)
            except OSError:
                break
            if not data:
                break
            self._position += len(data)
            self._ahead += self._decoder.decode(data).encode("utf-8", "replace")


class Copies:
    """Tells copies from other text in one pipe, whose own stream is `kind`. A copied line may break off where the rank
    had written no line end yet, and the launcher's own words then follow on the same line: those must not be lost."""

    def __init__(self, kind: bytes) -> None:
        self._kind = kind
        self._copied: dict[str, _Copied] = {}
        self._segment = b""
        self._files: list[RankFile] = []

    def foreign(self, text: bytes, first: bool, files: list[RankFile]) -> bytes:
        """What in the text behind a rank's prefix is not from that rank; it is judged when the prefix's reach has
        ended. `first`: the prefix stood right before."""
        rest = self.flush() if first else b""
        self._segment += text
        self._files = files
        if text.endswith(b"\n") or len(self._segment) > _CHUNK:
            rest += self.flush()
        return rest

    def flush(self) -> bytes:
        """Judge what has come since the last prefix."""
        text, self._segment = self._segment, b""
        candidates = self._candidates() if text else []
        shared = [copied.common(text) for copied in candidates]
        count = max(shared, default=0)
        if count < len(text):
            for copied in candidates:  # torchrun may have read some bytes in another way: go on where it is
                further = copied.find(text)
                if further:
                    copied.skip(further)
                    return b""
        if count:
            candidates[shared.index(count)].skip(count)
        return text[count:] if count and text[count:] != b"\n" else b""

    def close(self) -> None:
        """Let go of all files."""
        for copied in self._copied.values():
            copied.close()
        self._copied.clear()

    def _candidates(self) -> list[_Copied]:
        newest = self._files[::-1]
        ordered = [file for file in newest if file.kind == self._kind] + [f for f in newest if f.kind != self._kind]
        return [copied for copied in map(self._of, ordered) if copied is not None]

    def _of(self, file: RankFile) -> _Copied | None:
        if file.path not in self._copied:
            try:
                self._copied[file.path] = _Copied(file.path)
            except OSError:
                return None
        return self._copied[file.path]
