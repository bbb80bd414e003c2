"""The few kernel calls that Python has no name for. Knows nothing of processes beyond the calling one."""

from __future__ import annotations

import fcntl
import os
import struct

_SET_DEATH_SIGNAL = 1
_SET_SUBREAPER = 36
_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_EXIT = 1 << 3
_PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01


def become_subreaper() -> None:
    """Orphans below this process become its children. PID 1 of a namespace is their parent anyway."""
    if os.getpid() != 1:
        _prctl(_SET_SUBREAPER, 1)


def signal_at_parent_death(signal_number: int) -> None:
    """The kernel sends the signal when the parent ends."""
    _prctl(_SET_DEATH_SIGNAL, signal_number)


def exit_status(pidfd: int) -> int | None:
    """The wait status of a process that its parent has reaped already. None where the kernel (before 6.15) does not
    tell."""
    info = bytearray(64)
    struct.pack_into("Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    known = struct.unpack_from("Q", info, 0)[0] & _PIDFD_INFO_EXIT
    return int(struct.unpack_from("i", info, 60)[0]) if known else None


def free_blocks(fd: int, end: int) -> None:
    """Give the blocks before `end` back to the file system; the file keeps its size. Best effort."""
    _libc().fallocate(fd, _PUNCH_HOLE_KEEP_SIZE, 0, end)


def _prctl(option: int, value: int) -> None:
    libc = _libc()
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(libc.get_errno(), "prctl")


class _Libc:
    """The C library, loaded when first used: ctypes is slow to import and may be missing in small images."""

    def __init__(self) -> None:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        word = ctypes.c_ulong
        self.prctl = library.prctl
        self.prctl.argtypes = [ctypes.c_int, word, word, word, word]
        self.fallocate = library.fallocate64 if hasattr(library, "fallocate64") else library.fallocate
        self.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        self.get_errno = ctypes.get_errno


_loaded: list[_Libc] = []


def _libc() -> _Libc:
    if not _loaded:
        _loaded.append(_Libc())
    return _loaded[0]
