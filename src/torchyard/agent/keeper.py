"""The keeper's start: reach the supervisor first, get ready while it answers. What it then does is in `keeping`."""

from __future__ import annotations

import os
import signal

from .channel import Channel
from .listen import connect, listen


def main(run: str) -> None:
    """Keep the command whose supervisor listens in the folder `run`."""
    home = os.getcwd()
    os.chdir(run)
    channel = Channel(connect("supervisor.sock"))
    channel.send({"hello": 1, "pid": os.getpid()})
    wakeup = _catch_signals()
    from .keeping import keep
    from .kernel import become_subreaper, signal_at_parent_death
    from .spawn import keep_files

    keep_files()
    become_subreaper()
    if os.getpid() != 1:
        signal_at_parent_death(signal.SIGTERM)
    keep(channel, listen(os.open(".", os.O_RDONLY | os.O_DIRECTORY), "keeper.sock"), wakeup, home)


def _catch_signals() -> int:
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader
