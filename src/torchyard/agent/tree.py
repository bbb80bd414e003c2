"""Process trees as /proc shows them, and how to end one. Knows nothing of ranks, logs or replicas."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

Reaped = Callable[[int, int], object]

_TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """One line of /proc/PID/stat. `start` is in clock ticks since boot; with the pid it names a process for ever."""

    __slots__ = ("exit_code", "group", "name", "parent", "pid", "start", "state")

    def __init__(self, pid: int, name: str, state: str, parent: int, group: int, start: int, exit_code: int) -> None:
        self.pid = pid
        self.name = name
        self.state = state
        self.parent = parent
        self.group = group
        self.start = start
        self.exit_code = exit_code

    @property
    def key(self) -> tuple[int, int]:
        """What names the process even when its pid is used again."""
        return (self.pid, self.start)

    @property
    def dead(self) -> bool:
        """It has ended and waits to be reaped."""
        return self.state in ("Z", "X")


def slurp(path: str) -> bytes:
    """A whole small file; empty when it cannot be read (the process may just have gone)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    chunks = []
    try:
        while True:
            chunk = os.read(fd, 65536)
            if not chunk:
                break
            chunks.append(chunk)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(chunks)


def look(pid: int) -> Process | None:
    """The process as it is now, or None when there is none."""
    line = slurp(f"/proc/{pid}/stat")
    close = line.rfind(b")")
    if close < 0:
        return None
    name = line[line.index(b"(") + 1 : close].decode("utf-8", "replace")
    fields = line[close + 2 :].split()
    exit_code = int(fields[49]) if len(fields) > 49 else 0
    return Process(pid, name, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[19]), exit_code)


def children(pid: int) -> list[int]:
    """Children of all threads of a process."""
    found: list[int] = []
    try:
        with os.scandir(f"/proc/{pid}/task") as threads:
            for thread in threads:
                found.extend(map(int, slurp(f"/proc/{pid}/task/{thread.name}/children").split()))
    except OSError:
        return found
    return found


def below(root: int, without: frozenset[int] = frozenset(), leaves: frozenset[int] = frozenset()) -> list[Process]:
    """Everything below a process, parents first, but not the subtrees in `without`, nor what is below `leaves`."""
    found: list[Process] = []
    queue = children(root)
    seen = {root, *without}
    for pid in queue:  # grows while it is walked
        if pid in seen:
            continue
        seen.add(pid)
        process = look(pid)
        if process is not None:
            found.append(process)
            if pid not in leaves:
                queue.extend(children(pid))
    return found


def environment(pid: int) -> dict[str, str]:
    """The environment a process was started with. Between fork and exec this is still its parent's."""
    pairs = slurp(f"/proc/{pid}/environ").split(b"\0")
    return dict(pair.decode("utf-8", "replace").split("=", 1) for pair in pairs if b"=" in pair)


def argv(pid: int) -> list[str]:
    """The command line of a process."""
    return [word.decode("utf-8", "replace") for word in slurp(f"/proc/{pid}/cmdline").split(b"\0")[:-1]]


def inner_pids(root: int) -> dict[int, int]:
    """Pid inside the innermost pid namespace -> pid here, for everything at and below a process."""
    found: dict[int, int] = {}
    for pid in [root, *(process.pid for process in below(root))]:
        for line in slurp(f"/proc/{pid}/status").split(b"\n"):
            if line.startswith(b"NSpid:"):
                found[int(line.split()[-1])] = pid
    return found


def unix_time(start: int) -> float:
    """Clock ticks since boot as unix seconds."""
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - start / _TICKS)


def ticks_now() -> int:
    """Clock ticks since boot."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def reap(reaped: Reaped) -> bool:
    """Collect the children that have ended, telling each (pid, wait status). False: no child is left at all."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        reaped(pid, status)


def strike(root: int, itself: bool = False) -> None:
    """One round of SIGKILL on everything below a process. Whole groups, since a group cannot fork away from it."""
    own = os.getpgrp()
    groups = {0, 1, own}
    targets = [process.pid for process in below(root)]
    for pid in [root, *targets] if itself else targets:
        try:
            group = os.getpgid(pid)
            if group not in groups:
                groups.add(group)
                os.killpg(group, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def end_all(reaped: Reaped) -> None:
    """SIGKILL everything below this process, which must be the reaper of its orphans, until nothing is left."""
    pause = 0.001
    while True:
        strike(os.getpid())
        if not reap(reaped):
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


def gone_within(patience: float, reaped: Reaped) -> bool:
    """Wait until no child is left, but not for ever."""
    until = time.monotonic() + patience
    while reap(reaped):
        if time.monotonic() >= until:
            return False
        time.sleep(0.005)
    return True


def exit_of(status: int) -> tuple[int | None, int | None]:
    """A raw wait status as (code, signal); one of them is None."""
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None
