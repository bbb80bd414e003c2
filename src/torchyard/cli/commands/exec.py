"""Run a command inside a replica. Knows the terminal; the frames are the client's."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import click

from torchyard.cli.session import Session, project_option
from torchyard.client.exec import ExecRequest, open_exec
from torchyard.client.exec import Session as Exec
from torchyard.domain.errors import TorchyardError

_PIECE = 65536


@click.command("exec", context_settings={"allow_interspersed_args": True})
@click.argument("name")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
@project_option
@click.option("--replica", "--pod", metavar="REPLICA", help="In this replica, else the first.")
@click.option("-i", "--stdin", "interactive", is_flag=True, help="Hand on what is typed here.")
@click.option("-t", "--tty", is_flag=True, help="With a terminal; taken for granted when typed at one.")
def command(
    name: str, words: tuple[str, ...], project: str | None, replica: str | None, interactive: bool, tty: bool
) -> int:
    """Run a command inside a replica, with its environment, devices and mounts; exit as it exits."""
    if not words:
        raise click.UsageError("there is no command: torchyard exec NAME -- COMMAND")
    if not interactive and not tty:
        # Typed at a terminal, a shell is meant to be talked to.
        tty = sys.stdin.isatty() and sys.stdout.isatty()
    return run_inside(name, words, project=project, replica=replica, stdin=interactive or tty, tty=tty)


def run_inside(
    name: str, words: tuple[str, ...], *, project: str | None, replica: str | None, stdin: bool, tty: bool
) -> int:
    """Run a command in a replica with our own stdin, stdout and stderr; answers its exit code."""
    if tty and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("-t needs a terminal here; leave it out to pipe")
    session = Session(project)
    row = session.workload(name)
    size = os.get_terminal_size() if tty else os.terminal_size((80, 24))
    request = ExecRequest(argv=words, replica=replica, tty=tty, rows=size.lines, columns=size.columns)
    # Without stdin the command finds its end at once, as with `< /dev/null`.
    with open_exec(session.server, row["id"], request) as inside:
        if not stdin:
            inside.end()
            return inside.wait(_write)
        with _raw_terminal(inside) if tty else nullcontext():
            threading.Thread(target=_feed, args=(inside,), daemon=True).start()
            return inside.wait(_write)


def _write(stream: int, data: bytes) -> None:
    out = sys.stderr.buffer if stream == 2 else sys.stdout.buffer
    out.write(data)
    out.flush()


def _feed(inside: Exec) -> None:
    from websockets.exceptions import ConnectionClosed

    try:
        while data := os.read(sys.stdin.fileno(), _PIECE):
            inside.send(data)
        inside.end()
    except (ConnectionClosed, OSError, TorchyardError):
        # The command is over; its exit code says how.
        return


@contextmanager
def _raw_terminal(inside: Exec) -> Iterator[None]:
    """Every key goes to the replica, and it learns of each new size."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    # Not the default, which would throw away what was typed ahead.
    tty.setraw(terminal, termios.TCSADRAIN)
    try:
        with _resizing(inside):
            yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _resizing(inside: Exec) -> Iterator[None]:
    def tell(*_: object) -> None:
        size = os.get_terminal_size()
        inside.resize(size.lines, size.columns)

    before = signal.signal(signal.SIGWINCH, tell)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
