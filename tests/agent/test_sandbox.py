"""The same inside a pid namespace, where the keeper is PID 1."""

import os
import shlex
import shutil
import signal
from collections.abc import Callable

import pytest
from tests.agent.replicas import PYTHON, Replica, ask_keeper, children, eventually

Script = Callable[[str], list[str]]
BWRAP = shutil.which("bwrap")
INSTALLED = [BWRAP] if BWRAP else []
RANK = """
import os, signal, time
def handler(*_):
    print("asked once")
    os._exit(4)
signal.signal(signal.SIGTERM, handler)
open(f"ready-{os.environ['RANK']}", "w").close()
print("pid", os.getpid())
time.sleep(100)
"""

pytestmark = pytest.mark.parametrize("bwrap", INSTALLED)


def fenced(replica: Replica, bwrap: str, argv: list[str], env: dict[str, str] | None = None) -> None:
    box = [bwrap, "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--as-pid-1", "--die-with-parent", "--"]
    keeper = [*PYTHON, "-c", replica.code("keeper", replica.path / "run")]
    replica.prepare(argv, env, keeper_argv=[*box, *keeper])
    replica.start()


def test_an_end_and_a_stray(replica: Replica, bwrap: str) -> None:
    fenced(replica, bwrap, ["bash", "-c", "echo pid $$; sleep 100 & exit 3"])
    record = replica.wait()
    assert (record["code"], record["left_behind"], record["reason"]) == (3, ["sleep"], None)
    assert int(replica.said()[0].split()[1]) < 20
    assert not replica.alive()


def test_ranks_have_the_pids_of_the_machine(replica: Replica, script: Script, torchrun: str, bwrap: str) -> None:
    argv = ["bash", "-c", shlex.join([torchrun, *script(RANK)])]
    fenced(replica, bwrap, argv, {"PET_REDIRECTS": "3"})
    ranks = eventually(lambda: seen if len(seen := replica.status()["ranks"]) == 2 else [])
    assert {rank["pid"] for rank in ranks} < set(replica.alive())
    assert replica.command_pid() in replica.alive()
    eventually((replica.attempt / "ready-0").exists)
    eventually((replica.attempt / "ready-1").exists)
    replica.stop(20)
    record = replica.wait()
    assert [(rank["code"], rank["pid"]) for rank in record["ranks"]] == [(4, rank["pid"]) for rank in ranks]
    for rank in ("0", "1"):
        assert replica.said(rank)[1:] == ["asked once"]
    assert not replica.alive()


@pytest.mark.parametrize("victim", ["supervisor", "bwrap", "keeper"])
def test_nothing_is_left(replica: Replica, script: Script, torchrun: str, bwrap: str, victim: str) -> None:
    fenced(replica, bwrap, ["bash", "-c", shlex.join([torchrun, *script(RANK)])], {"PET_REDIRECTS": "3"})
    eventually(lambda: len(replica.status()["ranks"]) == 2)
    assert replica.supervisor is not None
    wrapper = children(replica.supervisor.pid)[0]
    pids = {"supervisor": replica.supervisor.pid, "bwrap": wrapper, "keeper": children(wrapper)[0]}
    os.kill(pids[victim], signal.SIGKILL)
    eventually(lambda: not replica.alive(), 3)
    if victim != "supervisor":
        assert replica.wait()["reason"] == "keeperLost"


def test_exec_in_the_sandbox(replica: Replica, bwrap: str) -> None:
    fenced(replica, bwrap, ["sleep", "100"])
    replica.command_pid()
    reader, writer = os.pipe()
    request = {"argv": ["sh", "-c", "echo $$"], "tty": False}
    connection, replies = ask_keeper(replica, request, [0, writer, writer])
    next(replies)
    assert next(replies) == {"exit": 0}
    assert int(os.read(reader, 100)) < 20
    os.close(writer)
    os.close(reader)
    connection.close()
    replica.stop(5)
    replica.wait()
