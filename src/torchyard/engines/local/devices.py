"""The machine's devices: GPUs where NVML finds any, else CPU slots. Held by lock files that all servers share."""

import contextlib
import fcntl
import json
import os
import pwd
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from torchyard.domain.observation import Device
from torchyard.engines.engine import Busy, CannotStart
from torchyard.engines.local import locks

LEAST_SLOTS = 4


@dataclass(frozen=True, slots=True)
class Unit:
    """One device as the machine has it. `strangers`: processes on it that hold no lock, as (user, pid)."""

    index: int
    kind: str
    strangers: tuple[tuple[str, int], ...] = ()


class Devices:
    """All devices of the machine that this server may use."""

    def __init__(self, lock_dir: Path, cpu_slots: int | None) -> None:
        self._lock_dir = lock_dir
        self._cpu_slots = cpu_slots
        self._gpus = _has_gpus()

    @property
    def are_gpus(self) -> bool:
        """GPUs, or CPU slots?"""
        return self._gpus

    def units(self) -> tuple[Unit, ...]:
        """What is there now."""
        if self._gpus:
            return _gpus()
        count = self._cpu_slots or max(LEAST_SLOTS, os.cpu_count() or 1)
        return tuple(Unit(index, "cpu") for index in range(count))

    def look(self) -> tuple[Device, ...]:
        """Every device and who holds it."""
        held = locks.held()
        return tuple(self._device(unit, held) for unit in self.units())

    def _device(self, unit: Unit, held: frozenset[tuple[int, int, int]]) -> Device:
        path = self._path(unit.index)
        if locks.identity(path) in held or locks.is_refused(path):
            key, owner, since, name = _read_holder(path)
            ours = owner == os.getuid()
            who = key if ours or owner is None else f"a workload of user {_user(owner)}"
            return Device(index=unit.index, kind=unit.kind, ours=ours, held_by=who, held_since=since, workload=name)
        if unit.strangers:
            user, pid = unit.strangers[0]
            return Device(index=unit.index, kind=unit.kind, held_by=f"process {pid} of user {user}")
        return Device(index=unit.index, kind=unit.kind)

    def take(self, count: int, key: str, workload: str | None = None) -> list[tuple[int, int]]:
        """Lock `count` devices: (index, open file). Raises Busy, keeping none, when there are not so many free ones,
        and CannotStart where the lock folder is of no use. Other servers read the attempt's key and the workload's
        name."""
        taken: list[tuple[int, int]] = []
        for unit in self.units():
            if len(taken) == count:
                break
            try:
                handle = None if unit.strangers else self._lock(unit.index, key, workload)
            except CannotStart:
                release([handle for _, handle in taken])
                raise
            if handle is not None:
                taken.append((unit.index, handle))
        if len(taken) < count:
            release([handle for _, handle in taken])
            raise Busy(f"only {len(taken)} of the {count} devices that it needs could be taken")
        return taken

    def _path(self, index: int) -> Path:
        return self._lock_dir / f"{'gpu' if self._gpus else 'cpu'}-{index}"

    def _lock(self, index: int, key: str, workload: str | None) -> int | None:
        try:
            _make_folder(self._lock_dir)
            handle = _open(self._path(index))
        except OSError as problem:
            raise CannotStart(
                f"devices cannot be locked: {problem}",
                f"let every user write in {self._lock_dir}, or set TORCHYARD_LOCK_DIR alike for all servers",
            ) from problem
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        said = json.dumps({"key": key, "uid": os.getuid(), "since": time.time(), "workload": workload}).encode()
        with contextlib.suppress(OSError):  # the lock counts; on a full disk it says nothing of its holder
            os.ftruncate(handle, 0)
            os.pwrite(handle, said, 0)
        return handle


def release(handles: Sequence[int]) -> None:
    """Let go of our copies of the locks."""
    for handle in handles:
        os.close(handle)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)


def _open(path: Path) -> int:
    # Opening an existing file of another user with O_CREAT is refused in a sticky folder (fs.protected_regular).
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(handle, 0o666)
            return handle
        return os.open(path, flags)


def _read_holder(path: Path) -> tuple[str, int | None, datetime | None, str | None]:
    try:
        said = json.loads(path.read_text())
        name = said.get("workload")
        since = datetime.fromtimestamp(said["since"], UTC)
        return str(said["key"]), int(said["uid"]), since, name if isinstance(name, str) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        # Anybody on this machine may have written it.
        return "a program that does not say whose it is", None, None, None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def _has_gpus() -> bool:
    import pynvml

    try:
        pynvml.nvmlInit()
        return bool(_gpus())
    except pynvml.NVMLError:
        return False


def _gpus() -> tuple[Unit, ...]:
    import pynvml

    found = []
    for index in range(int(pynvml.nvmlDeviceGetCount())):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        if not _is_visible(index, _text(pynvml.nvmlDeviceGetUUID(gpu))):
            continue
        kind = _text(pynvml.nvmlDeviceGetName(gpu))
        pids = [int(process.pid) for process in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)]
        found.append(Unit(index, kind, tuple((_owner(pid), pid) for pid in pids)))
    return tuple(found)


def _is_visible(index: int, uuid: str) -> bool:
    """What the server itself was given: numbers, or (the beginning of) names such as GPU-8932f937."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return True
    words = [word.strip() for word in given.split(",") if word.strip()]
    return any(uuid.startswith(word) or (word.isdigit() and int(word) == index) for word in words)


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _owner(pid: int) -> str:
    try:
        return _user(Path(f"/proc/{pid}").stat().st_uid)
    except OSError:
        return "unknown"
