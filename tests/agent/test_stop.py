"""Stop: everybody is asked exactly once, is heard out, and is killed only after the grace."""

import shlex
import signal
from collections.abc import Callable

import pytest
from tests.agent.replicas import Replica, eventually

Script = Callable[[str], list[str]]

COUNTING = """
import os, signal, sys, time
name = os.environ.get("RANK", "alone")
asked = 0
def handler(*_):
    global asked
    asked += 1
signal.signal(signal.SIGTERM, handler)
open(f"ready-{name}", "w").close()
while not asked:
    time.sleep(0.01)
end = time.monotonic() + 0.6
while time.monotonic() < end:
    time.sleep(0.01)
print("rank", name, "asked", asked, "times; saved")
"""
DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(f"ready-{os.environ.get('RANK', 'alone')}", "w").close()
time.sleep(100)
"""


def begin(replica: Replica, argv: list[str], ready: list[str], env: dict[str, str] | None = None) -> None:
    replica.prepare(argv, env)
    replica.start()
    eventually(lambda: all((replica.attempt / f"ready-{name}").exists() for name in ready))


def test_a_plain_command(replica: Replica, script: Script) -> None:
    begin(replica, script(COUNTING), ["alone"])
    replica.stop(20)
    record = replica.wait()
    assert replica.said() == ["rank alone asked 1 times; saved"]
    assert (record["stopped"], record["killed_after_grace"], record["code"]) == (True, False, 0)
    assert record["left_behind"] == []


@pytest.mark.parametrize("mode", ["PET_REDIRECTS", "PET_TEE"])
@pytest.mark.parametrize("shell", ["torchrun alone", "bash + torchrun", "bash + torchrun | tee"])
def test_torchrun_and_its_ranks(replica: Replica, script: Script, torchrun: str, shell: str, mode: str) -> None:
    argv = [torchrun, *script(COUNTING)]
    if shell != "torchrun alone":
        argv = ["bash", "-c", f"{shlex.join(argv)} {'| cat' if 'tee' in shell else ''}; echo not reached"]
    begin(replica, argv, ["0", "1"], {mode: "3"})
    replica.stop(20)
    record = replica.wait()
    for rank in ("0", "1"):
        assert replica.said(rank) == [f"rank {rank} asked 1 times; saved"]
    assert replica.said() == []
    assert (record["stopped"], record["killed_after_grace"]) == (True, False)
    assert record["signal" if "bash" in shell else "code"] == (signal.SIGTERM if "bash" in shell else 1)
    assert [(rank["rank"], rank["code"]) for rank in record["ranks"]] == [(0, 0), (1, 0)]
    assert not replica.alive()


def test_what_stands_beside_torchrun_is_asked_too(replica: Replica, script: Script, torchrun: str) -> None:
    beside = shlex.join(["env", "-u", "RANK", *script(COUNTING)])
    line = f"setsid {beside} & {shlex.join([torchrun, *script(COUNTING)])}; wait"
    begin(replica, ["bash", "-c", line], ["alone", "0", "1"], {"PET_REDIRECTS": "3"})
    replica.stop(20)
    replica.wait()
    assert replica.said() == ["rank alone asked 1 times; saved"]
    assert replica.said("0") == ["rank 0 asked 1 times; saved"]


def test_a_helper_in_a_ranks_group_hears_it_once(replica: Replica, script: Script, torchrun: str) -> None:
    """A daemon of a rank hangs below the keeper, but torchrun signals its group all the same."""
    rank = (
        "import os, subprocess, sys, time\n"
        "name = 'helper' + os.environ['RANK']\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.environ['RANK'] = name\n"
        f"        exec({COUNTING!r})\n"
        "        sys.stdout.flush()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        f"exec({COUNTING!r})\n"
    )
    begin(replica, [torchrun, *script(rank)], ["0", "1", "helper0", "helper1"], {"PET_REDIRECTS": "3"})
    replica.stop(20)
    replica.wait()
    for number in ("0", "1"):
        said = sorted(replica.said(number))
        assert said == [f"rank {number} asked 1 times; saved", f"rank helper{number} asked 1 times; saved"]


def test_after_the_grace_nothing_is_spared(replica: Replica, script: Script) -> None:
    """Bash goes at once; what it started does not listen."""
    deaf = script(DEAF)
    begin(replica, ["bash", "-c", f"{shlex.join(deaf)}; echo not reached"], ["alone"])
    replica.stop(1.5)
    record = replica.wait()
    assert (record["signal"], record["stopped"], record["killed_after_grace"]) == (signal.SIGTERM, True, True)
    assert 1 < record["at"] - record["command_ended_at"] < 4
    assert not replica.alive()


def test_deaf_ranks_die_with_the_grace(replica: Replica, script: Script, torchrun: str) -> None:
    begin(replica, ["bash", "-c", shlex.join([torchrun, *script(DEAF)])], ["0", "1"], {"PET_REDIRECTS": "3"})
    replica.stop(1)
    record = replica.wait()
    assert record["killed_after_grace"]
    assert [rank["signal"] for rank in record["ranks"]] == [signal.SIGKILL] * 2
    assert not replica.alive()


def test_a_second_stop_shortens_the_grace(replica: Replica, script: Script) -> None:
    begin(replica, script(DEAF), ["alone"])
    replica.stop(100)
    eventually(lambda: replica.status()["state"] == "ending")
    replica.stop(0.5)
    record = replica.wait(10)
    assert (record["signal"], record["killed_after_grace"]) == (signal.SIGKILL, True)


def test_a_longer_second_stop_changes_nothing(replica: Replica, script: Script) -> None:
    begin(replica, script(DEAF), ["alone"])
    replica.stop(1)
    eventually(lambda: replica.status()["state"] == "ending")
    replica.stop(100)
    assert replica.wait(10)["killed_after_grace"]


def test_without_a_stop_file_the_usual_grace_counts(replica: Replica, script: Script) -> None:
    replica.prepare(script(DEAF), grace=0.5)
    replica.start()
    eventually((replica.attempt / "ready-alone").exists)
    assert replica.supervisor is not None
    replica.supervisor.terminate()
    record = replica.wait(10)
    assert (record["stopped"], record["killed_after_grace"]) == (True, True)


def test_a_trap_may_finish_its_work(replica: Replica) -> None:
    """What a handler starts is part of ending well: it is not asked to end."""
    line = "trap 'sh -c \"sleep 0.5; echo saved\"; exit 5' TERM; touch ready-alone; while :; do sleep 0.05; done"
    begin(replica, ["bash", "-c", line], ["alone"])
    replica.stop(20)
    record = replica.wait()
    assert (record["code"], replica.said()) == (5, ["saved"])
