"""Who holds a flock, without taking it: a probe that locks could keep a supervisor from getting its own."""

import fcntl
import os
from pathlib import Path


def held(table: str | None = None) -> frozenset[tuple[int, int, int]]:
    """(major, minor, inode) of every file with an exclusive flock, as /proc/locks has it (proc(5))."""
    return frozenset(_holders(Path("/proc/locks").read_text() if table is None else table))


def holder(path: Path) -> int | None:
    """The process that took this file's lock, while it is held."""
    locked = identity(path)
    return None if locked is None else _holders(Path("/proc/locks").read_text()).get(locked)


def _holders(table: str) -> dict[tuple[int, int, int], int]:
    """Who took the lock, for each locked file."""
    found = {}
    for line in table.splitlines():
        words = line.split()
        if "->" not in words and len(words) >= 6 and words[1] == "FLOCK" and words[3] == "WRITE":
            major, minor, inode = words[5].split(":")
            found[int(major, 16), int(minor, 16), int(inode)] = int(words[4])
    return found


def identity(path: Path) -> tuple[int, int, int] | None:
    """The same three numbers for a file; None when there is none that we can reach."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    try:
        stat = os.fstat(handle)
        return *_device(handle, stat.st_dev), stat.st_ino
    finally:
        os.close(handle)


def _device(handle: int, told: int) -> tuple[int, int]:
    # A btrfs subvolume tells stat(2) a number of its own; /proc/locks and mountinfo have that of the file system.
    if os.major(told) == 0:
        facts = Path(f"/proc/self/fdinfo/{handle}").read_text().split()
        mount = facts[facts.index("mnt_id:") + 1]
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            words = line.split(maxsplit=3)
            if words[0] == mount:
                major, minor = words[2].split(":")
                return int(major), int(minor)
    return os.major(told), os.minor(told)


def is_held(path: Path) -> bool:
    """Does anybody hold this file's lock?"""
    return identity(path) in held()


def is_refused(path: Path) -> bool:
    """Tries to share the lock for a moment. In a pid namespace (a container) /proc/locks is silent about a lock whose
    taker has died, though others hold on to it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
