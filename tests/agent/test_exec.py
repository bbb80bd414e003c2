"""Commands that run beside the ranks, over keeper.sock."""

import json
import os
import pty
import select
import stat
from collections.abc import Iterator
from typing import Any

import pytest
from tests.agent.replicas import Replica, ask_keeper, eventually


@pytest.fixture
def running(replica: Replica) -> Iterator[Replica]:
    replica.prepare(["sh", "-c", "until [ -e go ]; do sleep 0.01; done"], {"FRUIT": "fig"})
    replica.start(secrets={"API_KEY": "k"})
    replica.command_pid()
    yield replica
    (replica.attempt / "go").touch()


class Pipes:
    """Three pipes for a command; ours are the other ends."""

    def __init__(self) -> None:
        self.theirs_in, self.stdin = os.pipe()
        self.stdout, self.theirs_out = os.pipe()
        self.stderr, self.theirs_err = os.pipe()
        self.theirs = [self.theirs_in, self.theirs_out, self.theirs_err]

    def handed_over(self) -> None:
        for fd in self.theirs:
            os.close(fd)

    def close(self) -> None:
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


def read_all(fd: int) -> bytes:
    chunks = []
    while select.select([fd], [], [], 15)[0]:
        try:
            chunk = os.read(fd, 4096)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


def test_it_has_the_commands_world_and_our_pipes(running: Replica, pipes: Pipes) -> None:
    script = "read line; echo $line $FRUIT $API_KEY $EXTRA; pwd; echo bad >&2; exit 7"
    request: dict[str, Any] = {"argv": ["sh", "-c", script], "tty": False, "env": {"EXTRA": "more"}, "cwd": None}
    connection, replies = ask_keeper(running, request, pipes.theirs)
    pipes.handed_over()
    pid = next(replies)["pid"]
    eventually(lambda: pid in running.alive())
    os.write(pipes.stdin, b"hello\n")
    assert next(replies) == {"exit": 7}
    assert read_all(pipes.stdout).decode() == f"hello fig k more\n{running.attempt}\n"
    assert read_all(pipes.stderr) == b"bad\n"
    connection.close()
    (running.attempt / "go").touch()
    record = running.wait()
    assert (record["code"], record["left_behind"]) == (0, [])
    assert running.log() == []


def test_a_signal_is_told_as_in_a_shell(running: Replica, pipes: Pipes) -> None:
    connection, replies = ask_keeper(running, {"argv": ["sh", "-c", "kill -9 $$"], "tty": False}, pipes.theirs)
    pipes.handed_over()
    next(replies)
    assert next(replies) == {"exit": 137}
    connection.close()


def test_what_cannot_start_says_so(running: Replica, pipes: Pipes) -> None:
    connection, replies = ask_keeper(running, {"argv": ["no-such-program"], "tty": False}, pipes.theirs)
    pipes.handed_over()
    next(replies)
    assert next(replies) == {"exit": 127}
    assert b"no-such-program" in read_all(pipes.stderr)
    connection.close()


def test_a_terminal_is_its_own(running: Replica) -> None:
    ours, theirs = pty.openpty()
    script = "tty; ps -o stat= -p $$ 2>/dev/null; test -t 0 && echo interactive; : < /dev/tty && echo controlling"
    request = {"argv": ["sh", "-c", script], "tty": True, "env": {"TERM": "dumb"}, "cwd": "/"}
    connection, replies = ask_keeper(running, request, [theirs, theirs, theirs])
    os.close(theirs)
    next(replies)
    shown = read_all(ours).decode()
    assert next(replies) == {"exit": 0}
    assert "/dev/pts/" in shown
    assert "interactive" in shown
    assert "controlling" in shown
    connection.close()
    os.close(ours)


@pytest.mark.parametrize("script", ["sleep 100", "trap '' HUP TERM; sleep 100; sleep 100"])
def test_it_ends_with_the_connection(running: Replica, pipes: Pipes, script: str) -> None:
    connection, replies = ask_keeper(running, {"argv": ["sh", "-c", script], "tty": False}, pipes.theirs)
    pipes.handed_over()
    pid = next(replies)["pid"]
    connection.close()
    eventually(lambda: pid not in running.alive(), 3)
    assert running.status()["state"] == "running"


def test_it_does_not_keep_the_replica_alive(running: Replica, pipes: Pipes) -> None:
    request = {"argv": ["sh", "-c", "trap '' HUP TERM; echo deaf; while :; do sleep 1; done"], "tty": False}
    connection, replies = ask_keeper(running, request, pipes.theirs)
    pipes.handed_over()
    next(replies)
    assert os.read(pipes.stdout, 100) == b"deaf\n"
    (running.attempt / "go").touch()
    record = running.wait()
    assert (record["code"], record["left_behind"]) == (0, [])
    assert record["at"] - record["command_ended_at"] < 3
    assert next(replies) == {"exit": 137}
    connection.close()


def test_only_the_owner_may_ask(running: Replica) -> None:
    for name in ("keeper.sock", "supervisor.sock"):
        assert stat.S_IMODE((running.path / "run" / name).stat().st_mode) == 0o600


def test_nonsense_hurts_nobody(running: Replica, pipes: Pipes) -> None:
    connection, replies = ask_keeper(running, {"argv": "ls", "tty": False}, pipes.theirs)
    pipes.handed_over()
    assert "error" in next(replies)
    connection.sendall(b"not json\n" + json.dumps([1]).encode() + b"\n")
    connection.close()
    (running.attempt / "go").touch()
    assert running.wait()["code"] == 0
