"""Keeps one command and all that comes of it: starts it, watches its ranks, asks it to end, and leaves nothing behind.
Writes no file; the supervisor, from whom it has its orders, does."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import stat
import time

from . import terminate, tree
from .channel import Channel
from .execs import Exec, Execs
from .image import COMMAND
from .ranks import Book, Launcher, Rank
from .shapes import texts, words
from .spawn import spawn

_SCAN = 0.2
_SCAN_HUNGRY = 0.05
_SCAN_SHARE = 50
_SETTLE = 0.1
_STRIKE_AGAIN = 0.05
_GRACE_LEFT = 5.0
_GRACE_LEFT_FAILED = 1.0


class Keeper:
    """The loop. `_deadline` (monotonic) is when SIGKILL comes."""

    def __init__(self, channel: Channel, order: dict[str, object], listener: socket.socket, wakeup: int) -> None:
        self._channel = channel
        self._listener = listener
        self._wakeup = wakeup
        self._argv = words(order.get("argv"))
        # In a container the image's own environment counts where nothing else was said.
        self._env = {**(os.environ if order.get("keep_env") else {}), **texts(order.get("env"))}
        self._cwd = str(order.get("cwd"))
        self._book = Book()
        self._execs = Execs(self._env, self._cwd)
        self._selector = selectors.DefaultSelector()
        self._command = 0
        self._status: int | None = None
        self._ended_at = 0.0
        self._abandoned = False
        self._stop_tick: int | None = None
        self._deadline: float | None = None
        self._settle_at: float | None = None
        self._left: list[str] = []
        self._killed = False
        self._signalled: set[tuple[int, int]] = set()
        self._forwarding: set[int] = set()
        self._scan_at = 0.0
        self._news = False
        self._empty = False

    def run(self, early: list[dict[str, object]]) -> None:
        """Start the command; come back when nothing of it is left. `early`: what was said right after the order."""
        self._watch()
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._command = spawn(self._argv, self._env, self._cwd, (nothing, 1, 2))
        os.close(nothing)
        self._channel.send({"command": self._command})
        self._obey(early)
        while not (self._empty and self._status is not None) and not self._abandoned:
            self._turn()
        if self._abandoned:
            tree.end_all(self._reaped)
        else:
            self._report_end()

    def _watch(self) -> None:
        self._selector.register(self._channel.socket, selectors.EVENT_READ, self._hear)
        self._selector.register(self._listener, selectors.EVENT_READ, self._requested)
        self._selector.register(self._wakeup, selectors.EVENT_READ, self._wake)
        if stat.S_ISFIFO(os.fstat(0).st_mode) or stat.S_ISSOCK(os.fstat(0).st_mode):
            self._selector.register(0, selectors.EVENT_READ, self._input)

    def _turn(self) -> None:
        events = self._selector.select(self._timeout())
        # Ends of ranks first: a zombie tells how it ended only until somebody reaps it.
        for key, _ in events:
            if isinstance(key.data, (Launcher, Rank)):
                self._selector.unregister(key.fd)
                self._book.ended(key.data)
                self._news = True
        for key, _ in events:
            if isinstance(key.data, Exec):
                self._serve(key.data)
            elif not isinstance(key.data, (Launcher, Rank)):
                key.data()
        self._reap()
        now = time.monotonic()
        if now >= self._scan_at:
            self._scan(now)
            if self._settle_at is None and (self._status is not None or self._stop_tick is not None):
                self._terminate()
        self._press(now)
        self._execs.tick(now)
        self._tell()

    def _timeout(self) -> float:
        times = (self._scan_at, self._deadline, self._settle_at, self._execs.next_kill)
        soonest = min(moment for moment in times if moment is not None)
        return max(0.0, soonest - time.monotonic())

    # What comes in

    def _hear(self) -> None:
        self._obey(self._channel.receive())
        self._abandoned = self._abandoned or self._channel.closed

    def _obey(self, messages: list[dict[str, object]]) -> None:
        for message in messages:
            grace = message.get("stop")
            if isinstance(grace, (int, float)):
                self._stop(float(grace))

    def _input(self) -> None:
        if not os.read(0, 65536):
            self._abandoned = True

    def _wake(self) -> None:
        if signal.SIGTERM in os.read(self._wakeup, 4096):
            self._abandoned = True

    def _requested(self) -> None:
        item = self._execs.accept(self._listener)
        if item is None:
            return
        if self._status is not None:
            item.channel.send({"error": "the command of this replica has ended"})
            self._execs.hang_up(item)
        else:
            self._selector.register(item.channel.socket, selectors.EVENT_READ, item)

    def _serve(self, item: Exec) -> None:
        if item in self._execs.open and not self._execs.ready(item):
            self._forget(item)

    def _forget(self, item: Exec) -> None:
        if item.channel.socket in self._selector.get_map():
            self._selector.unregister(item.channel.socket)

    # The tree

    def _reap(self) -> None:
        self._empty = not tree.reap(self._reaped)
        for item in self._book.unwatched():
            self._book.ended(item)
            self._news = True

    def _reaped(self, pid: int, status: int) -> None:
        if pid == self._command and self._status is None:
            self._status = status
            self._ended_at = time.time()
            self._settle_at = time.monotonic() + _SETTLE
            for item in list(self._execs.open):
                self._forget(item)
                self._execs.hang_up(item)
        tracked = self._book.fd_of(pid)
        if tracked >= 0:
            self._selector.unregister(tracked)
        self._news = self._book.reaped(pid, status) or self._news
        done = self._execs.reaped(pid, status)
        if done is not None:
            self._forget(done)
            done.channel.close()

    def _scan(self, now: float) -> None:
        roots = [pid for pid in tree.children(os.getpid()) if pid not in self._execs.pids]
        for item in self._book.scan(roots):
            self._news = True
            if item.fd >= 0:
                self._selector.register(item.fd, selectors.EVENT_READ, item)
        cost = time.monotonic() - now
        pause = _SCAN_HUNGRY if self._book.hungry else _SCAN
        self._scan_at = now + max(pause, _SCAN_SHARE * cost)

    def _tell(self) -> None:
        if self._news:
            self._news = False
            self._channel.send(self._seen())
        self._channel.flush()

    def _seen(self) -> dict[str, object]:
        return {
            "ranks": [rank.record() for rank in self._book.ranks],
            "launchers": [launcher.record() for launcher in self._book.launchers],
        }

    # The end

    def _stop(self, grace: float) -> None:
        deadline = time.monotonic() + grace
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)
        if self._stop_tick is None:
            self._scan(time.monotonic())  # a torchrun must be known as one before it is signalled
            self._terminate()
            self._stop_tick = tree.ticks_now()
            self._scan_at = time.monotonic() + _SETTLE

    def _press(self, now: float) -> None:
        """What the clock asks for, once the command has ended or was asked to."""
        if self._settle_at is not None and now >= self._settle_at and not self._empty:
            self._settle_at = None
            self._name_the_left()
        if self._deadline is not None and now >= self._deadline and not self._empty:
            self._killed = self._stop_tick is not None
            tree.strike(os.getpid())
            self._deadline = now + _STRIKE_AGAIN

    def _name_the_left(self) -> None:
        if self._stop_tick is None:
            left = tree.below(os.getpid(), self._execs.pids)
            self._left = [process.name for process in left if not process.dead]
            self._channel.send({"ending": True})
            grace = _GRACE_LEFT if self._status == 0 else _GRACE_LEFT_FAILED
            self._deadline = time.monotonic() + grace
        self._terminate()

    def _terminate(self) -> None:
        """SIGTERM for everybody who has not had it. While the command still runs, only for those that were there when
        the stop came (one may have been forked while we looked): what a trap handler starts is part of ending well."""
        launchers = self._book.live_launchers
        processes = tree.below(os.getpid(), leaves=launchers)
        if self._status is None and self._stop_tick is not None:
            limit = self._stop_tick
            processes = [process for process in processes if process.start < limit]
        forwarding = launchers | frozenset(self._forwarding)
        forwarded = self._book.groups_of(forwarding)
        for process in terminate.targets(processes, launchers, forwarded, frozenset(self._signalled)):
            self._signalled.add(process.key)
            if process.pid in launchers:
                self._forwarding.add(process.pid)
            try:
                os.kill(process.pid, signal.SIGTERM)
            except (ProcessLookupError, PermissionError):
                continue

    def _report_end(self) -> None:
        code, number = tree.exit_of(self._status or 0)
        report = {
            "code": code,
            "signal": number,
            "command_ended_at": self._ended_at,
            "left_behind": self._left,
            "killed_after_grace": self._killed,
        }
        self._channel.send({**self._seen(), "exit": report})
        self._channel.socket.setblocking(True)
        self._channel.flush()


def keep(channel: Channel, listener: socket.socket, wakeup: int, home: str) -> None:
    """Wait for the order, then keep the command until nothing of it is left. `home`: the folder to start in where the
    order names none, the image's own."""
    with selectors.DefaultSelector() as selector:
        selector.register(channel.socket, selectors.EVENT_READ)
        messages: list[dict[str, object]] = []
        while not messages and not channel.closed:
            selector.select()
            messages = channel.receive()
    if messages:
        order = {**messages[0], "cwd": messages[0].get("cwd") or home}
        of_image = os.environ.pop(COMMAND, None)
        if of_image is not None:
            order["argv"] = json.loads(of_image)
        Keeper(channel, order, listener, wakeup).run(messages[1:])
