"""The supervisor's loop: from the keeper's start until nothing is left. Reads pipes, rank files and the keeper's word,
and writes the log and the status. Does not know how the keeper is started, nor what an end means."""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import socket
import struct
import time

from . import records, tree
from .channel import Channel
from .follow import Follower
from .logfile import LogFile
from .output import Output
from .shapes import number, table, texts, words
from .sightings import Sightings

_TICK = 0.1
_SET_PIPE_SIZE = 1031
_PIPE_SIZE = 1 << 20
_READ_SIZE = 1 << 16
_MESSAGE_SIZE = 4000
_NAMES = 100
_WRAPPER_ALONE = 1.0
_START_PATIENCE = 2.0
_WRAPPER_PATIENCE = 10.0
_KEEPER_PATIENCE = 30.0
_NOT_FOUND = 127


class Started:
    """The keeper's process and our ends of what connects us to it. It ends its tree when its stdin does."""

    __slots__ = ("listener", "pid", "stderr", "stdin", "stdout")

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int, listener: socket.socket) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.listener = listener


class Supervision:
    """The loop, from the keeper's start until nothing is left. At `_give_up_at` (monotonic) it ends what there is."""

    def __init__(self, folder: records.Folder, replica: dict[str, object], secrets: dict[str, str]) -> None:
        self._folder = folder
        self._replica = replica
        env = {**texts(replica.get("env")), **secrets}
        self._order: dict[str, object] = {
            "argv": replica["argv"],
            "cwd": replica["cwd"],
            "env": env,
            "keep_env": replica.get("keep_env"),
        }
        self._output = Output(LogFile(folder.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)), _follower(replica))
        self._sightings = Sightings()
        self._selector = selectors.DefaultSelector()
        self._pipes: dict[int, bytes] = {}
        self._channel: Channel | None = None
        self._wrapper = 0
        self._stdin = -1
        self._ordered = False
        self._stopped = False
        self._ended = False
        self._exit: dict[str, object] | None = None
        self._wrapper_status: int | None = None
        self._lost = False
        self._give_up_at: float | None = None
        self._state = "starting"
        self._news = True

    def begin(self, wakeup: int, started: Started | None) -> None:
        """Read what the keeper and its command say from now on. None: a stop came first, and nothing was started."""
        self._selector.register(wakeup, selectors.EVENT_READ, lambda: self._wake(wakeup))
        if started is None:
            self._ask_to_stop()
            return
        self._wrapper = started.pid
        self._stdin = started.stdin
        self._pipe(b"o", started.stdout)
        self._pipe(b"e", started.stderr)
        listener = started.listener
        self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))

    def run(self) -> None:
        """Until the keeper has reported and gone, or there is nothing to wait for."""
        next_tick = 0.0
        while not self._over():
            for key, _ in self._selector.select(max(0.0, next_tick - time.monotonic())):
                key.data()
            now = time.monotonic()
            if self._news or now >= next_tick:
                self._tick()
                next_tick = now + _TICK

    def finish(self) -> dict[str, object]:
        """End what is left, read what is left; the exit record comes back."""
        if self._channel is not None:
            self._channel.close()
        if self._stdin >= 0:
            os.close(self._stdin)
        if self._exit is None or not tree.gone_within(_WRAPPER_PATIENCE, self._reaped):
            tree.end_all(self._reaped)
        for fd in list(self._pipes):
            while self._read(fd):
                continue
        self._output.finish(time.time())
        return self._record()

    # What comes in

    def _pipe(self, kind: bytes, reader: int) -> None:
        os.set_blocking(reader, False)
        try:
            fcntl.fcntl(reader, _SET_PIPE_SIZE, _PIPE_SIZE)
        except OSError:  # over the user's limit: it stays as it is
            pass
        self._pipes[reader] = kind
        self._selector.register(reader, selectors.EVENT_READ, lambda: self._read(reader))

    def _read(self, fd: int) -> bool:
        """Read once. False: nothing is there, or nobody can write any more."""
        if fd not in self._pipes:
            return False
        try:
            data = os.read(fd, _READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(fd)
            del self._pipes[fd]
            os.close(fd)
            return False
        self._output.feed(self._pipes[fd], data, time.time())
        return True

    def _wake(self, wakeup: int) -> None:
        if signal.SIGTERM in os.read(wakeup, 4096):
            self._ask_to_stop()
        tree.reap(self._reaped)

    def _reaped(self, pid: int, status: int) -> None:
        if pid == self._wrapper and self._wrapper_status is None:
            self._wrapper_status = status
            if self._exit is None:
                self._give_up_within(_WRAPPER_ALONE)

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self._selector.unregister(listener)
        listener.close()
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self._sightings.keeper_pid = int(struct.unpack("3i", peer)[0])
        self._channel = Channel(connection)
        self._selector.register(connection, self._channel.events, self._hear)

    def _hear(self) -> None:
        channel = self._channel
        if channel is None:
            return
        channel.flush()
        for message in channel.receive():
            self._told(channel, message)
        if channel.closed:
            self._selector.unregister(channel.socket)
            self._lost = self._exit is None
        else:
            self._selector.modify(channel.socket, channel.events, self._hear)

    def _told(self, channel: Channel, message: dict[str, object]) -> None:
        if "hello" in message:
            self._sightings.hello(message.get("pid"))
            if self._stopped:
                channel.closed = True
            else:
                self._ordered = True
                channel.send(self._order)
        if "command" in message:
            self._state = "running"
            self._sightings.command(message["command"])
        if "ranks" in message:
            for folder, rank in self._sightings.ranks(message):
                self._output.learn(folder, rank)
        if "ending" in message:
            self._state = "ending"
        if isinstance(message.get("exit"), dict):
            self._exit = table(message["exit"])
            self._state = "ending"
            self._give_up_within(_WRAPPER_PATIENCE)
        self._news = True

    # Stop and end

    def _ask_to_stop(self) -> None:
        asked = self._folder.read("stop") or {}
        grace = number(asked.get("grace"), number(self._replica.get("grace"), 30.0))
        self._stopped = True
        self._state = "ending"
        self._news = True
        if self._channel is not None and self._ordered:
            self._channel.send({"stop": grace})
            self._give_up_within(grace + _KEEPER_PATIENCE)
        elif self._wrapper:
            os.kill(self._wrapper, signal.SIGTERM)
            self._give_up_within(_START_PATIENCE)
        else:
            self._lost = True

    def _give_up_within(self, seconds: float) -> None:
        moment = time.monotonic() + seconds
        self._give_up_at = moment if self._give_up_at is None else min(self._give_up_at, moment)

    def _over(self) -> bool:
        reported = self._exit is not None and self._wrapper_status is not None
        never_up = self._channel is None and self._wrapper_status is not None
        late = self._give_up_at is not None and time.monotonic() >= self._give_up_at
        return self._lost or reported or never_up or late

    def _tick(self) -> None:
        self._output.poll(time.time())
        if self._news:
            document = {"state": self._state, "at": time.time(), **self._sightings.status()}
            self._news = not records.write_status(self._folder, document)

    def _record(self) -> dict[str, object]:
        told = self._exit or {}
        reason, message = self._reason()
        return {
            "code": told.get("code"),
            "signal": told.get("signal"),
            "at": time.time(),
            "command_ended_at": told.get("command_ended_at"),
            "stopped": self._stopped,
            "reason": reason,
            "message": message[-_MESSAGE_SIZE:],
            "left_behind": words(told.get("left_behind"))[:_NAMES],
            "killed_after_grace": bool(told.get("killed_after_grace")),
            "lost_log_lines": self._output.lost,
            **self._sightings.exit(),
        }

    def _reason(self) -> tuple[str | None, str]:
        if self._exit is not None or (self._stopped and not self._ordered):
            return None, ""
        if self._ordered:
            return "keeperLost", "the process that kept the command was killed; the rest of its tree was ended"
        if self._wrapper_status is not None and tree.exit_of(self._wrapper_status)[0] == _NOT_FOUND:
            hint = str(self._replica.get("not_found") or "")
            return "start", "\n".join(filter(None, (self._output.last_words, hint)))
        return "start", self._output.last_words or "what should start the command ended without a word"


def _follower(replica: dict[str, object]) -> Follower:
    env = texts(replica.get("env"))
    teed = any(word.startswith(("--tee", "-t")) for word in words(replica.get("argv")))
    sole = "PET_REDIRECTS" in env and "PET_TEE" not in env and not teed
    first = int(number(replica.get("node_rank"), 0)) * int(number(replica.get("nproc"), 1))
    return Follower(str(replica["rank_logs"]), first, sole)
