"""Where no process can be made."""

import errno
import os
import signal

import pytest

from torchyard.agent import spawn


def test_a_fork_that_fails_leaves_signals_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", fork)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(BlockingIOError):
        spawn.spawn(["true"], {}, None, (0, 1, 2))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
