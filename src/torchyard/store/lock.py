"""One active server for a data folder: a lock that the kernel frees when the server dies, and a check of its disk."""

import fcntl
import json
import os
from pathlib import Path

from torchyard.domain.errors import Conflict, Unavailable

_NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs",
    "pvfs2", "smb3", "smbfs",
}  # fmt: skip


class Lock:
    """Held while the server lives. `epoch` grows with each server on this folder."""

    def __init__(self, handle: int, epoch: int) -> None:
        self._handle = handle
        self.epoch = epoch

    def release(self) -> None:
        """Let another server in."""
        os.close(self._handle)


def lead(data: Path) -> Lock:
    """Become the only server on this folder. Raises Conflict naming the one that is there."""
    handle = os.open(data / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        os.close(handle)
        raise Conflict(
            f"another server works on {data}{_who(data)}",
            "use that one, stop it, or set TORCHYARD_DATA to another folder",
        ) from problem
    text = os.read(handle, 64).decode(errors="replace").strip()
    epoch = int(text) + 1 if text.isdigit() else 1
    os.pwrite(handle, f"{epoch}\n".encode(), 0)
    return Lock(handle, epoch)


def _who(data: Path) -> str:
    try:
        known = json.loads((data / "server.json").read_text())
        return f" (pid {known['pid']}, {known['url']})"
    except (OSError, ValueError, KeyError):
        return ""


def check_disk(data: Path, mountinfo: str | None = None) -> None:
    """Raises Unavailable when the folder lies on a network file system, where SQLite and locks cannot be trusted."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    kind = file_system(data.resolve(), text)
    if kind in _NETWORK or kind.startswith("fuse.") or kind == "fuse":
        raise Unavailable(
            f"the data folder {data} is on a network file system ({kind}), where SQLite and locks cannot be trusted",
            "set TORCHYARD_DATA to a folder on a local disk",
        )


def file_system(path: Path, mountinfo: str) -> str:
    """Type of the file system that holds this path (proc(5): the last mount on the longest mount point)."""
    best, kind = -1, "unknown"
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        fields = head.split()
        if len(fields) < 5 or not tail:
            continue
        point = Path(fields[4].encode().decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), tail.split()[0]
    return kind
