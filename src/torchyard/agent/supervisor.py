"""Supervises one replica from outside: holds its lock, starts the keeper (which starts the command), writes its
records. All that it must know stands in the replica folder; it asks nobody else."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys

from . import records, tree
from .shapes import table, texts, words
from .spawn import keep_files, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .supervision import Started

_CLEANUP_PATIENCE = 20.0


def main(path: str) -> None:
    """Supervise the replica in the folder `path`, unless another supervisor does or did."""
    secrets = _read_secrets()
    if secrets is None:
        sys.exit("whoever started this supervisor ended before it had said with what environment")
    # Whoever holds the lock can be found and told to stop: that is not to kill us before we can listen.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    folder = records.Folder(path)
    lock = folder.open("replica.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    tombstone = records.claim_start(folder)
    if tombstone is None:
        return
    os.dup2(2, 1)  # the end of our first stdout says that we have started
    replica = folder.read("replica.json")
    if replica is None:
        sys.exit(f"{path}/replica.json is missing or broken")
    try:
        os.setsid()
    except PermissionError:  # it leads a session or a group already
        pass
    _supervise(folder, replica, secrets, tombstone)


def _supervise(folder: records.Folder, replica: dict[str, object], secrets: dict[str, str], tombstone: int) -> None:
    wakeup = _catch_signals()
    exit_fd = records.reserve_exit(folder)
    oom_kills = records.oom_kills()
    # A stop may have come between the look for it and the tombstone, too early to be sent here.
    started = None if folder.has("stop") else _start_keeper(folder, words(replica.get("keeper_argv")))
    from .supervision import Supervision  # while the keeper comes up

    supervision = Supervision(folder, replica, secrets)
    os.fsync(tombstone)
    os.fsync(folder.fd)
    supervision.begin(wakeup, started)
    supervision.run()
    record = supervision.finish()
    _tidy(folder, replica)
    records.write_exit(exit_fd, {**record, "oom_kills": records.oom_kills() - oom_kills})


def _start_keeper(folder: records.Folder, argv: list[str]) -> Started:
    """The keeper takes longer to come up than we to listen; if not, it tries again."""
    stdin, our_stdin = os.pipe2(os.O_CLOEXEC)
    our_stdout, stdout = os.pipe2(os.O_CLOEXEC)
    our_stderr, stderr = os.pipe2(os.O_CLOEXEC)
    pid = spawn(argv, dict(os.environ), None, (stdin, stdout, stderr), session=False)
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    keep_files()
    from .kernel import become_subreaper
    from .listen import listen
    from .supervision import Started

    become_subreaper()
    folder.make("run")
    listener = listen(folder.open("run", os.O_RDONLY | os.O_DIRECTORY), "supervisor.sock")
    return Started(pid, our_stdin, our_stdout, our_stderr, listener)


def _catch_signals() -> int:
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    return reader


def _read_secrets() -> dict[str, str] | None:
    """The environment that must not be written down comes on stdin, which is not needed afterwards. None: it did not
    come whole."""
    chunks = []
    while chunk := os.read(0, 65536):
        chunks.append(chunk)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        return texts(table(json.loads(b"".join(chunks))).get("env"))
    except ValueError:
        return None


def _tidy(folder: records.Folder, replica: dict[str, object]) -> None:
    """Remove what only the running replica needed; run what its wrapper needs for that."""
    folder.remove("run/supervisor.sock")
    folder.remove("run/keeper.sock")
    rank_logs = str(replica["rank_logs"])
    if os.access(rank_logs, os.F_OK):
        from shutil import rmtree

        rmtree(rank_logs, ignore_errors=True)
    argv = words(replica.get("cleanup_argv"))
    if argv:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            spawn(argv, dict(os.environ), None, (nothing, nothing, nothing))
        except OSError:  # no process can be made; the record of the end counts for more
            return
        if not tree.gone_within(_CLEANUP_PATIENCE, _unmoved):
            tree.end_all(_unmoved)


def _unmoved(pid: int, status: int) -> None:
    """Nobody wants to know."""
