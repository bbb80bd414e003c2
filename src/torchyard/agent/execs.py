"""Commands that a user runs beside the ranks: requests over keeper.sock. Knows nothing of the replica's own command."""

from __future__ import annotations

import os
import signal
import socket
import time

from . import tree
from .channel import Channel
from .spawn import spawn

_PATIENCE = 1.0


class Exec:
    """One request: its connection, and its process once it runs. When the requester has gone, `kill_at` is set."""

    __slots__ = ("channel", "kill_at", "pid")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.pid: int | None = None
        self.kill_at: float | None = None


class Execs:
    """All of them. The caller accepts connections, waits on them and reaps."""

    def __init__(self, env: dict[str, str], cwd: str) -> None:
        self._env = env
        self._cwd = cwd
        self.open: list[Exec] = []

    @property
    def pids(self) -> frozenset[int]:
        """Processes that run for a request."""
        return frozenset(item.pid for item in self.open if item.pid is not None)

    @property
    def next_kill(self) -> float | None:
        """When `tick` has something to do (monotonic)."""
        return min((item.kill_at for item in self.open if item.kill_at is not None), default=None)

    def accept(self, listener: socket.socket) -> Exec | None:
        """A new request is there."""
        try:
            connection, _ = listener.accept()
        except OSError:
            return None
        item = Exec(Channel(connection))
        self.open.append(item)
        return item

    def ready(self, item: Exec) -> bool:
        """Its connection can be read. False: the connection is over, stop waiting on it."""
        item.channel.flush()
        for message in item.channel.receive():
            if item.pid is None and len(item.channel.fds) >= 3:
                self._start(item, message)
        if item.channel.closed:
            self.hang_up(item)
        return not item.channel.closed

    def reaped(self, pid: int, status: int) -> Exec | None:
        """One of them has ended: tell the requester. Its connection is no longer to be waited on."""
        for item in self.open:
            if item.pid == pid:
                code, number = tree.exit_of(status)
                if not item.channel.closed:
                    item.channel.send({"exit": 128 + number if number is not None else code})
                self.open.remove(item)
                return item
        return None

    def hang_up(self, item: Exec) -> None:
        """End one: SIGHUP as when a terminal closes, SIGKILL soon after."""
        if item.pid is None:
            item.channel.close()
            self.open.remove(item)
        elif item.kill_at is None:
            item.kill_at = time.monotonic() + _PATIENCE
            _signal_group(item.pid, signal.SIGHUP)
            _signal_group(item.pid, signal.SIGCONT)

    def tick(self, now: float) -> None:
        """Kill those that did not go."""
        for item in self.open:
            if item.pid is not None and item.kill_at is not None and now >= item.kill_at:
                tree.strike(item.pid, itself=True)
                item.kill_at = now + _PATIENCE

    def _start(self, item: Exec, message: dict[str, object]) -> None:
        argv, extra, cwd = message.get("argv"), message.get("env"), message.get("cwd")
        fds = item.channel.fds[:3]
        if isinstance(argv, list) and argv:
            env = {**self._env, **(extra if isinstance(extra, dict) else {})}
            place = cwd if isinstance(cwd, str) else self._cwd
            words = [str(word) for word in argv]
            try:
                item.pid = spawn(words, env, place, (fds[0], fds[1], fds[2]), terminal=bool(message.get("tty")))
                item.channel.send({"pid": item.pid})
            except OSError as error:
                item.channel.send({"error": f"no process can be started: {error.strerror}"})
        else:
            item.channel.send({"error": "no command was given"})
        for fd in item.channel.fds:
            os.close(fd)
        item.channel.fds.clear()


def _signal_group(pid: int, number: int) -> None:
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
            return
        except ProcessLookupError:  # not yet a group of its own, or gone
            continue
