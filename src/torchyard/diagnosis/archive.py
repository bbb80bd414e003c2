"""Zip files as torch.save writes them: a directory at the very end, so a file that was cut off has none.

Reads the directory itself, since sizes that a hostile file claims must not decide how much memory is taken.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from torchyard.diagnosis.file import CHUNK, Broken, Readable, exactly

MAX_DIRECTORY = 32 * 1024 * 1024
MAX_ENTRIES = 200_000
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_COMMENT = 65535
_FULL = 0xFFFFFFFF
_CUT_OFF = "the file is cut off: the directory at its end is missing"


@dataclass(frozen=True, slots=True)
class Checked:
    """What the archive is and why it is not whole (None: it is)."""

    format: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class _Entry:
    name: bytes
    method: int
    crc: int
    packed: int
    unpacked: int
    offset: int


def check(file: Readable, size: int, *, deep: bool) -> Checked:
    """Check directory, every entry's place and, when `deep`, every byte."""
    kind = "zip"
    try:
        entries = tuple(_entries(file, size))
        kind = _kind(entries)
        starts = [_start(file, entry, size) for entry in entries]
        if kind == "zip":
            raise Broken("it is a zip file, but torch.save did not write it")
        if deep:
            _contents(file, entries, starts)
    except Broken as broken:
        return Checked("torch" if kind == "zip" and size and str(broken) == _CUT_OFF else kind, str(broken))
    return Checked(kind, None)


def _kind(entries: tuple[_Entry, ...]) -> str:
    names = {entry.name.rpartition(b"/")[2] for entry in entries if entry.name.count(b"/") <= 1}
    if b"constants.pkl" in names:
        return "torchscript"
    return "torch" if b"data.pkl" in names else "zip"


def _entries(file: Readable, size: int) -> Iterator[_Entry]:
    count, length, offset = _directory(file, size)
    if length > MAX_DIRECTORY or count > MAX_ENTRIES:
        raise Broken("the zip directory is too large to be checked")
    if offset + length > size:
        raise Broken("the zip directory points outside the file")
    data = exactly(file, offset, length)
    at = 0
    for _ in range(count):
        if at + _CENTRAL.size > len(data):
            raise Broken("the zip directory is cut off")
        fields = _CENTRAL.unpack_from(data, at)
        if fields[0] != b"PK\x01\x02":
            raise Broken("the zip directory is damaged")
        method, crc, packed, unpacked = fields[4], fields[7], fields[8], fields[9]
        name_length, extra_length, comment_length, start = fields[10], fields[11], fields[12], fields[16]
        at += _CENTRAL.size
        name = data[at : at + name_length]
        extra = data[at + name_length : at + name_length + extra_length]
        unpacked, packed, start = _wide(extra, unpacked, packed, start)
        at += name_length + extra_length + comment_length
        yield _Entry(name, method, crc, packed, unpacked, start)


def _directory(file: Readable, size: int) -> tuple[int, int, int]:
    """How many entries there are, and length and offset of the directory."""
    tail_length = min(size, _END.size + _MAX_COMMENT)
    tail = exactly(file, size - tail_length, tail_length)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail):
        raise Broken(_CUT_OFF)
    end = _END.unpack_from(tail, at)
    count, length, offset = end[4], end[5], end[6]
    place = size - tail_length + at - _LOCATOR.size
    if place >= 0:
        locator = _LOCATOR.unpack(exactly(file, place, _LOCATOR.size))
        if locator[0] == b"PK\x06\x07":
            return _directory64(file, size, locator[2])
    return count, length, offset


def _directory64(file: Readable, size: int, at: int) -> tuple[int, int, int]:
    if at + _END64.size > size:
        raise Broken("the zip directory points outside the file")
    end = _END64.unpack(exactly(file, at, _END64.size))
    if end[0] != b"PK\x06\x06":
        raise Broken("the zip directory is damaged")
    return end[7], end[8], end[9]


def _wide(extra: bytes, unpacked: int, packed: int, start: int) -> tuple[int, int, int]:
    """Sizes and offset of a zip64 entry, whose directory fields are all ones."""
    at = 0
    while at + 4 <= len(extra):
        tag, length = struct.unpack_from("<2H", extra, at)
        at += 4
        if tag == 1:
            wide = [int.from_bytes(extra[i : i + 8], "little") for i in range(at, min(at + length, len(extra)) - 7, 8)]
            values = [wide.pop(0) if value == _FULL and wide else value for value in (unpacked, packed, start)]
            return values[0], values[1], values[2]
        at += length
    return unpacked, packed, start


def _start(file: Readable, entry: _Entry, size: int) -> int:
    """Where the entry's bytes begin. Raises Broken when they are not all there."""
    shown = entry.name[:80].decode(errors="replace")
    if entry.offset + _LOCAL.size > size:
        raise Broken(f"{shown} lies outside the file")
    head = exactly(file, entry.offset, min(_LOCAL.size + len(entry.name), size - entry.offset))
    local = _LOCAL.unpack_from(head)
    if local[0] != b"PK\x03\x04" or head[_LOCAL.size :] != entry.name:
        raise Broken(f"{shown} is not where the directory says")
    start: int = entry.offset + _LOCAL.size + local[9] + local[10]
    if start + entry.packed > size:
        raise Broken(f"{shown} is cut off")
    return start


def _contents(file: Readable, entries: tuple[_Entry, ...], starts: list[int]) -> None:
    """Read every byte. Where torch was told to leave check sums out all of them are zero: nothing can be compared."""
    spans = sorted((start, start + entry.packed) for start, entry in zip(starts, entries, strict=True))
    if any(begin < stop for (_, stop), (begin, _) in pairwise(spans)):
        raise Broken("entries of the zip file overlap")
    if all(entry.crc == 0 for entry in entries):
        return
    for entry, start in zip(entries, starts, strict=True):
        crc, length = _checked(file, entry, start)
        if length != entry.unpacked or crc != entry.crc:
            raise Broken(f"{entry.name[:80].decode(errors='replace')} is damaged: its check sum is another")


def _checked(file: Readable, entry: _Entry, start: int) -> tuple[int, int]:
    """Check sum and length of an entry's content, no more than it claims to have."""
    if entry.method not in (0, 8):
        raise Broken("it is packed in a way that torch does not know")
    unpack = zlib.decompressobj(-zlib.MAX_WBITS) if entry.method == 8 else None
    crc, length, left = 0, 0, entry.packed
    file.seek(start)
    while left > 0 and length <= entry.unpacked:
        data = file.read(min(left, CHUNK))
        if not data:
            raise Broken("the file became shorter while it was read: it may just be being written")
        left -= len(data)
        while data:
            try:
                content = unpack.decompress(data, CHUNK) if unpack else data
            except zlib.error:
                return 0, -1
            data = unpack.unconsumed_tail if unpack else b""
            crc, length = zlib.crc32(content, crc), length + len(content)
            if length > entry.unpacked:
                return 0, -1
    return crc, length
