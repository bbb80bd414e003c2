"""Reads what supervisors write. Torn, missing or strange records are told apart from whole ones, never believed."""

import json
import zlib
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any] | None:
    """A JSON record; None when there is none, or it is torn. Raises OSError when it cannot be read for now."""
    try:
        record = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def read_exit(path: Path) -> dict[str, Any] | None:
    """The exit record, whose checksum must be right. Raises OSError when it cannot be read for now."""
    try:
        line = path.read_bytes().split(b"\n", 1)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    checksum, _, body = line.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(body):
            return None
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def boot_id() -> str:
    """Changes with every start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (proc(5)); None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])
