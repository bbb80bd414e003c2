"""Start a program by fork and exec, quickly and without leaks. Does not know what it starts."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import termios

_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


def spawn(
    argv: list[str],
    env: dict[str, str],
    cwd: str | None,
    files: tuple[int, int, int],
    session: bool = True,
    terminal: bool = False,
) -> int:
    """Start `argv` on the given stdin, stdout and stderr. A program that cannot be started ends with 126 or 127 and
    a sentence on its stderr, as in a shell. Raises OSError where no process can be made."""
    # A signal between fork and exec would write into the wake-up pipe that the child still shares with us.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _RESET)
    try:
        pid = os.fork()
        if pid == 0:
            _become(argv, env, cwd, files, session, terminal)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def keep_files() -> None:
    """What was inherited (device locks) is held here, and not passed on to what is started from now on."""
    with os.scandir("/proc/self/fd") as entries:
        fds = [int(entry.name) for entry in entries]
    for fd in fds:
        try:
            if fd > 2:
                os.set_inheritable(fd, False)
        except OSError:
            continue


def _become(
    argv: list[str], env: dict[str, str], cwd: str | None, files: tuple[int, int, int], session: bool, terminal: bool
) -> None:
    status = 126
    try:
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        if session:
            os.setsid()
        if terminal:
            fcntl.ioctl(files[0], termios.TIOCSCTTY, 0)
        for target, fd in enumerate(files):
            os.dup2(fd, target)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        status = _enter(cwd) or _exec(argv, env)
    finally:
        os._exit(status)


def _enter(cwd: str | None) -> int:
    try:
        if cwd is not None:
            os.chdir(cwd)
    except OSError as error:
        return _complain(f"cannot enter the working folder {cwd}: {error.strerror}", 126)
    return 0


def _exec(argv: list[str], env: dict[str, str]) -> int:
    try:
        os.execvpe(argv[0], argv, env)
    except (OSError, ValueError) as error:
        missing = isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOTDIR)
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return _complain(f"cannot start {argv[0]!r}: {reason}", 127 if missing else 126)


def _complain(sentence: str, status: int) -> int:
    os.write(2, f"torchyard: {sentence}\n".encode("utf-8", "replace"))
    return status
