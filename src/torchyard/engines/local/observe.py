"""What the records and locks of an attempt's folder say. Judges nothing, starts nothing."""

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torchyard.domain.observation import LostBecause, Observation, RankSeen, ReplicaSeen, ReplicaState
from torchyard.engines.local import locks, records

MARK = "TORCHYARD_ATTEMPT"
REPLICA = "TORCHYARD_REPLICA"
PATIENCE = 5.0
"""Seconds that killed processes have to be gone."""


def observe(attempt: Path, boot_id: Callable[[], str] = records.boot_id) -> Observation:
    """All replicas, in plan order; none when the folder is gone."""
    now = datetime.now(UTC)
    facts = records.read(attempt / "attempt.json")
    if facts is None:
        return Observation(at=now, replicas=())
    # In this order: what had begun before the table was read and is not in it has ended since.
    folders = [attempt / str(name) for name in facts["replicas"]]
    begun = [(folder / "started").exists() for folder in folders]
    held = locks.held()
    boot = boot_id()
    replicas = tuple(_replica(*pair, held, boot) for pair in zip(folders, begun, strict=True))
    return Observation(at=now, replicas=replicas, port=facts["port"])


def _replica(folder: Path, begun: bool, held: frozenset[tuple[int, int, int]], boot: str) -> ReplicaSeen:
    alive = locks.identity(folder / "replica.lock") in held
    started = records.read(folder / "started")
    ended = records.read_exit(folder / "exit")
    name = folder.name
    devices = records.read(folder / "devices") or {}
    common: dict[str, Any] = {"node": socket.gethostname(), "devices": tuple(devices.get("devices", ()))}
    if ended is not None and not alive:
        return _ended(name, started, ended, common)
    if not alive and not begun:
        if (folder / "stop").exists():
            stopped_at = _moment((folder / "stop").stat().st_mtime)
            return ReplicaSeen(name=name, state=ReplicaState.ENDED, stopped=True, ended_at=stopped_at, **common)
        return ReplicaSeen(name=name, state=ReplicaState.PREPARED, **common)
    status = records.read(folder / "status") or {"state": "starting", "ranks": []}
    common |= {"ranks": _ranks(status), "started_at": _moment(started["at"]) if started else None}
    if alive:
        running = status["state"] != "starting"
        state = ReplicaState.RUNNING if running else ReplicaState.STARTING
        return ReplicaSeen(name=name, state=state, pid=status.get("command_pid"), **common)
    rebooted = started is not None and started["boot_id"] != boot
    because = LostBecause.REBOOT if rebooted else LostBecause.SUPERVISOR
    last = max((path.stat().st_mtime for path in (folder / "log", folder / "status") if path.exists()), default=None)
    return ReplicaSeen(name=name, state=ReplicaState.LOST, lost=because, ended_at=_moment(last), **common)


def _ended(name: str, started: dict[str, Any] | None, ended: dict[str, Any], common: dict[str, Any]) -> ReplicaSeen:
    lost = ended["reason"] == "keeperLost"
    return ReplicaSeen(
        name=name,
        state=ReplicaState.LOST if lost else ReplicaState.ENDED,
        lost=LostBecause.KEEPER if lost else None,
        started_at=_moment(started["at"]) if started else None,
        ended_at=_moment(ended["command_ended_at"] or ended["at"]),
        code=ended["code"],
        signal=ended["signal"],
        stopped=ended["stopped"],
        killed_after_grace=ended["killed_after_grace"],
        reason=None if lost else ended["reason"],
        message=ended["message"] or None,
        ranks=_ranks(ended),
        launchers=len(ended["launchers"]),
        launcher_signal=ended["launchers"][-1].get("signal") if ended["launchers"] else None,
        left_behind=tuple(ended["left_behind"]),
        oom_kills=ended["oom_kills"],
        lost_log_lines=ended["lost_log_lines"],
        **common,
    )


def _ranks(record: dict[str, Any]) -> tuple[RankSeen, ...]:
    return tuple(
        RankSeen(
            rank=r["rank"],
            local_rank=r["local_rank"],
            pid=r["pid"],
            started_at=_moment(r["started_at"]),
            ended_at=_moment(r["ended_at"]),
            code=r["code"],
            signal=r["signal"],
            restart=r["restart"],
            launcher=r["launcher"],
        )
        for r in record.get("ranks", ())
    )


def _moment(seconds: float | None) -> Any:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def sweep(key: str, replica: str | None = None) -> None:
    """SIGKILL every process that carries the mark of this attempt (of one replica of it), until there is none. What
    cannot die now (it waits for a disk) is left to the next sweep."""
    marks = {f"{MARK}={key}".encode()} | ({f"{REPLICA}={replica}".encode()} if replica else set())
    until = time.monotonic() + PATIENCE
    while found := [pid for pid in _processes() if _carries(pid, marks)]:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                handle = os.pidfd_open(pid)
                try:
                    if _carries(pid, marks):
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)
        if time.monotonic() > until:
            return
        time.sleep(0.005)


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _carries(pid: int, marks: set[bytes]) -> bool:
    if pid == os.getpid():
        return False
    try:
        return marks <= set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return False
