"""Reads the log of a replica where it lies: `<microseconds> <rank or -> <kind> <text>`, one record a line."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from torchyard.domain.observation import LogLine

CHUNK = 256 * 1024


def read(path: Path, after: int, attempt: int, replica: str) -> Iterator[LogLine]:
    """Whole records behind byte `after`; a position within a record means the next one."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        position = _align(handle, after)
        rest = b""
        while data := os.pread(handle, CHUNK, position + len(rest)):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                position += len(line) + 1
                parsed = parse(line, position, attempt, replica)
                if parsed is not None:
                    yield parsed
    finally:
        os.close(handle)


def _align(handle: int, after: int) -> int:
    if after <= 0:
        return 0
    position = after - 1
    while data := os.pread(handle, 4096, position):
        found = data.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(data)
    return position


def parse(line: bytes, cursor: int, attempt: int, replica: str) -> LogLine | None:
    """One record; None for what is none."""
    head, _, tail = line.partition(b" ")
    rank, _, tail = tail.partition(b" ")
    kind, space, text = tail.partition(b" ")
    if not space or not head.isdigit() or not (rank == b"-" or rank.isdigit()):
        return None
    try:
        at = datetime.fromtimestamp(int(head) / 1e6, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return LogLine(
        attempt=attempt,
        replica=replica,
        cursor=cursor,
        at=at,
        rank=None if rank == b"-" else int(rank),
        kind=kind.decode("ascii", "replace"),
        text=text.decode("utf-8", "replace"),
    )


def size(path: Path) -> int:
    """The position behind the last whole record."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        end = os.fstat(handle).st_size
        while end > 0:
            begin = max(0, end - CHUNK)
            found = os.pread(handle, end - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
        return 0
    finally:
        os.close(handle)
