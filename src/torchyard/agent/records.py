"""The small files of a replica folder: what is asked, what was started, how it stands, how it ended. Judges nothing."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping

from . import tree

FORMAT = 1
EXIT_SIZE = 16384


class Folder:
    """The replica folder, held open: it may be renamed meanwhile."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open(self, name: str, flags: int) -> int:
        """Open a file in it."""
        return os.open(name, flags | os.O_CLOEXEC, 0o600, dir_fd=self.fd)

    def make(self, name: str) -> None:
        """Make a folder in it, unless it is there."""
        try:
            os.mkdir(name, 0o700, dir_fd=self.fd)
        except FileExistsError:
            pass

    def remove(self, name: str) -> None:
        """Remove a file from it, if it is there."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            pass

    def has(self, name: str) -> bool:
        """Is there such a file?"""
        try:
            os.close(self.open(name, os.O_RDONLY | os.O_NONBLOCK))
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str) -> dict[str, object] | None:
        """A JSON file, or None when it is missing or torn."""
        data = tree.slurp(f"/proc/self/fd/{self.fd}/{name}")
        try:
            document = json.loads(data)
        except ValueError:
            return None
        return document if isinstance(document, dict) else None


def claim_start(folder: Folder) -> int | None:
    """Make `started`, the tombstone that keeps this replica from ever starting twice. None: it is there already, or
    `stop` is. The caller syncs the file that is given back."""
    if folder.has("started") or folder.has("stop"):
        return None
    me = tree.look(os.getpid())
    document = {
        "format": FORMAT,
        "boot_id": tree.slurp("/proc/sys/kernel/random/boot_id").decode().strip(),
        "pid": os.getpid(),
        "start_time": me.start if me is not None else 0,
        "at": time.time(),
    }
    try:
        fd = folder.open("started", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return None
    try:
        _write_all(fd, json.dumps(document).encode() + b"\n")
    except OSError:
        os.close(fd)
        folder.remove("started")
        raise
    return fd


def write_status(folder: Folder, document: Mapping[str, object]) -> bool:
    """Replace `status`. False: not now (no space); the old one stands."""
    try:
        fd = folder.open("status.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            _write_all(fd, json.dumps({"format": FORMAT, **document}).encode() + b"\n")
        finally:
            os.close(fd)
        os.rename("status.new", "status", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    except OSError:
        return False
    return True


def reserve_exit(folder: Folder) -> int:
    """Make the blank exit record, so that there is room for it when the disk is full."""
    fd = folder.open("exit", os.O_RDWR | os.O_CREAT)
    _write_all(fd, b" " * EXIT_SIZE)
    return fd


def write_exit(fd: int, document: Mapping[str, object]) -> None:
    """Write the exit record over the blank one. Where it does not fit, the oldest ranks are left out."""
    ranks = document.get("ranks")
    kept = list(ranks) if isinstance(ranks, list) else []
    line = exit_line({**document, "ranks": kept})
    try:
        os.pwrite(fd, line.ljust(EXIT_SIZE), 0)
        os.fsync(fd)
        whole = len(line) <= os.fstat(fd).st_size
    except OSError:
        whole = False
    if not whole or os.pread(fd, len(line), 0) != line:
        while len(line) > EXIT_SIZE and kept:
            kept = kept[max(1, len(kept) // 8) :]
            line = exit_line({**document, "ranks": kept})
        os.pwrite(fd, line.ljust(EXIT_SIZE)[:EXIT_SIZE], 0)
        os.fsync(fd)


def exit_line(document: Mapping[str, object]) -> bytes:
    """A record with its checksum: a torn one is told from a whole one."""
    body = json.dumps({"format": FORMAT, **document}).encode()
    return b"%08x %b\n" % (zlib.crc32(body), body)


def oom_kills() -> int:
    """How many processes the kernel has killed for lack of memory since boot."""
    for line in tree.slurp("/proc/vmstat").split(b"\n"):
        if line.startswith(b"oom_kill "):
            return int(line.split()[1])
    return 0


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
