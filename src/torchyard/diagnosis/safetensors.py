"""The safetensors format: 8 bytes of header length, a JSON header, then exactly the bytes that it speaks of."""

import json
import math
from typing import Any

from torchyard.diagnosis.file import Broken, Readable, exactly

MAX_HEADER = 25 * 1024 * 1024
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


def problem(file: Readable, size: int) -> str | None:
    """Why the file is not whole; None when it is."""
    if size < 10:
        return "the file is cut off within its header"
    length = int.from_bytes(exactly(file, 0, 8), "little")
    if length > MAX_HEADER:
        return "the header's length makes no sense" if length > size else "the header is too large to be checked"
    if 8 + length > size:
        return "the file is cut off within its header"
    try:
        header = json.loads(exactly(file, 8, length))
    except (ValueError, RecursionError):
        return "the header is not readable"
    except Broken as broken:
        return str(broken)
    if not isinstance(header, dict):
        return "the header is not readable"
    return _data_problem(header, size - 8 - length)


def _data_problem(header: dict[str, Any], available: int) -> str | None:
    spans = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        span = _span(entry)
        if span is None:
            return f"the header's entry {name[:80]!r} makes no sense"
        spans.append(span)
    end = 0
    for begin, stop in sorted(spans):
        if begin != end:
            return "the tensors overlap or leave a hole between them"
        end = stop
    if end > available:
        return f"the file is cut off: {end - available} bytes of tensors are missing"
    return "there are bytes after the last tensor" if end < available else None


def _span(entry: object) -> tuple[int, int] | None:
    """Begin and end of a tensor, when they fit its type and shape."""
    if not isinstance(entry, dict):
        return None
    offsets, shape = entry.get("data_offsets"), entry.get("shape")
    if not (_naturals(offsets) and isinstance(offsets, list) and len(offsets) == 2 and offsets[0] <= offsets[1]):
        return None
    if not (_naturals(shape) and isinstance(shape, list) and len(shape) <= 64):
        return None
    bits = _BITS.get(str(entry.get("dtype")))
    if bits is not None and (offsets[1] - offsets[0]) * 8 != math.prod(shape) * bits:
        return None
    return offsets[0], offsets[1]


def _naturals(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(n, int) and 0 <= n < 1 << 63 for n in value)
