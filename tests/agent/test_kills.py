"""Whoever is killed, nothing of the tree is left, and the record tells."""

import os
import shlex
import signal
import time
from collections.abc import Callable

import pytest
from tests.agent.replicas import Replica, children, cmdline, eventually

Script = Callable[[str], list[str]]

# Daemons that fork and go, a new chain of them ten times a second; by itself it ends after 20 s.
FORKING = """
import os, sys, time
depth, end = (int(sys.argv[1]), float(sys.argv[2])) if len(sys.argv) > 1 else (0, time.time() + 20)
open("forking", "a").close()
while time.time() < end and depth < 30:
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            if depth % 3 == 0:
                os.setsid()
            time.sleep(0.02)
            os.execv(sys.executable, [sys.executable, "-I", "-S", sys.argv[0], str(depth + 1), str(end)])
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.1)
    if depth:
        break
"""


@pytest.fixture
def forest(replica: Replica, script: Script) -> Replica:
    """A replica whose tree forks all the time, daemons included, beside a rank-like sleeper of bash."""
    argv = script(FORKING)
    replica.prepare(["bash", "-c", f"sleep 100 & {shlex.join(argv)}; true"])
    replica.start()
    eventually(lambda: (replica.attempt / "forking").exists() and len(replica.alive()) >= 4)
    return replica


def empty_within(replica: Replica, seconds: float) -> None:
    """Empty, and it stays so."""
    until = time.monotonic() + seconds
    eventually(lambda: not replica.alive(), seconds)
    assert time.monotonic() < until
    assert not eventually(lambda: [replica.alive()])[0]


def test_the_supervisor(forest: Replica) -> None:
    assert forest.supervisor is not None
    forest.supervisor.kill()
    empty_within(forest, 2)
    forest.supervisor.wait()
    assert forest.exit_record() is None
    assert (forest.path / "exit").read_bytes() == b" " * 16384


def test_the_keeper(forest: Replica) -> None:
    os.kill(forest.keeper_pid(), signal.SIGKILL)
    empty_within(forest, 2)
    record = forest.wait()
    assert (record["reason"], record["code"], record["signal"]) == ("keeperLost", None, None)
    assert record["message"]


def test_the_command(forest: Replica) -> None:
    os.kill(forest.command_pid(), signal.SIGKILL)
    record = forest.wait()
    assert (record["code"], record["signal"], record["reason"]) == (None, signal.SIGKILL, None)
    assert "sleep" in record["left_behind"]
    assert record["at"] - record["command_ended_at"] < 2
    assert not forest.alive()


def test_a_signal_to_the_keeper_ends_its_tree(forest: Replica) -> None:
    os.kill(forest.keeper_pid(), signal.SIGTERM)
    empty_within(forest, 2)
    assert forest.wait()["reason"] == "keeperLost"


def test_torchrun(replica: Replica, script: Script, torchrun: str) -> None:
    rank = script("import os, time\nopen(f\"ready{os.environ['RANK']}\", 'w')\ntime.sleep(100)\n")
    replica.prepare(["bash", "-c", f"{torchrun} {shlex.join(rank)}; echo after $?"])
    replica.start()
    ranks = eventually(lambda: seen if len(seen := replica.status()["ranks"]) == 2 else [])
    launcher = children(replica.command_pid())[0]
    assert torchrun.encode() in cmdline(launcher)
    os.kill(launcher, signal.SIGKILL)
    record = replica.wait()
    assert replica.said() == ["after 137"]
    assert record["code"] == 0
    assert record["at"] - record["command_ended_at"] < 2
    assert len(record["left_behind"]) == 2
    assert [(r["pid"], r["signal"]) for r in record["ranks"]] == [(r["pid"], signal.SIGTERM) for r in ranks]
    assert record["launchers"][0]["pid"] == launcher
    assert record["launchers"][0]["ended_at"] <= min(r["ended_at"] for r in record["ranks"])
    assert not replica.alive()


def test_a_keeper_that_hangs_is_ended_after_the_supervisor(forest: Replica) -> None:
    keeper = forest.keeper_pid()
    os.kill(keeper, signal.SIGSTOP)
    assert forest.supervisor is not None
    forest.supervisor.kill()
    forest.supervisor.wait()
    os.kill(keeper, signal.SIGCONT)
    empty_within(forest, 2)
    eventually(lambda: not cmdline(keeper), 2)
