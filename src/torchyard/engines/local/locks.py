"""Who holds a flock, without taking it: a probe that locks could keep a supervisor from getting its own."""

import os
from pathlib import Path


def held(table: str | None = None) -> frozenset[tuple[int, int, int]]:
    """(major, minor, inode) of every file with an exclusive flock, as /proc/locks has it (proc(5))."""
    text = Path("/proc/locks").read_text() if table is None else table
    found = set()
    for line in text.splitlines():
        words = line.split()
        if "->" not in words and len(words) >= 6 and words[1] == "FLOCK" and words[3] == "WRITE":
            major, minor, inode = words[5].split(":")
            found.add((int(major, 16), int(minor, 16), int(inode)))
    return frozenset(found)


def identity(path: Path) -> tuple[int, int, int] | None:
    """The same three numbers for a file; None when there is none."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return os.major(stat.st_dev), os.minor(stat.st_dev), stat.st_ino


def is_held(path: Path) -> bool:
    """Does anybody hold this file's lock?"""
    return identity(path) in held()
