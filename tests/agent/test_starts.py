"""A replica starts once at most, or says why it did not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.agent.replicas import PYTHON, Replica, eventually


def test_started_says_who_and_when(replica: Replica) -> None:
    replica.run(["true"])
    started = json.loads((replica.path / "started").read_text())
    assert replica.supervisor is not None
    assert started["pid"] == replica.supervisor.pid
    assert started["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert started["format"] == 1
    record = replica.exit_record()
    assert record is not None
    assert record["at"] > started["at"]


def test_a_second_start_does_nothing(replica: Replica) -> None:
    replica.run(["sh", "-c", "echo once >> ran"])
    before = {name: (replica.path / name).read_bytes() for name in ("log", "exit", "started", "status")}
    assert replica.start().wait(10) == 0
    assert before == {name: (replica.path / name).read_bytes() for name in before}
    assert (replica.attempt / "ran").read_text() == "once\n"


def test_a_stop_that_came_first_keeps_it_from_starting(replica: Replica) -> None:
    replica.prepare(["touch", "ran"])
    (replica.path / "stop").write_text('{"grace": 1, "reason": "user"}')
    assert replica.start().wait(10) == 0
    assert sorted(path.name for path in replica.path.iterdir()) == ["replica.json", "replica.lock", "run", "stop"]
    assert not (replica.attempt / "ran").exists()


@pytest.mark.parametrize("said", [b"", b'{"env": {"TOKEN": "s3c'])
def test_whoever_starts_it_dies_before_it_has_said_the_environment(replica: Replica, said: bytes) -> None:
    replica.prepare(["sh", "-c", "echo $TOKEN > ran"])
    argv = [*PYTHON, "-c", replica.code("supervisor", replica.path)]
    done = subprocess.run(argv, input=said, capture_output=True, timeout=20, check=False)
    assert done.returncode == 1
    assert b"environment" in done.stderr
    assert sorted(path.name for path in replica.path.iterdir()) == ["replica.json", "run"]
    replica.start({"TOKEN": "s3cret"})
    assert replica.wait()["code"] == 0
    assert (replica.attempt / "ran").read_text() == "s3cret\n"


def test_of_many_supervisors_one_starts_it(replica: Replica) -> None:
    replica.prepare(["sh", "-c", "echo once >> ran; until [ -e go ]; do sleep 0.01; done"])
    everybody = [replica.start() for _ in range(5)]
    eventually((replica.attempt / "ran").exists)
    quiet = eventually(lambda: [p for p in everybody if p.poll() is not None] if _left(everybody) == 1 else [])
    assert [process.returncode for process in quiet] == [0] * 4
    (replica.attempt / "go").touch()
    assert [process.wait(10) for process in everybody] == [0] * 5
    assert (replica.attempt / "ran").read_text() == "once\n"
    record = replica.exit_record()
    assert record is not None
    assert record["code"] == 0


def _left(processes: list[subprocess.Popen[bytes]]) -> int:
    return sum(process.poll() is None for process in processes)


def test_a_wrapper_that_fails_says_why(replica: Replica) -> None:
    wrapper = ["sh", "-c", "echo 'bwrap: no permissions' >&2; echo 'see the manual' >&2; exit 1"]
    record = replica.run(["true"], keeper_argv=wrapper)
    assert (record["reason"], record["code"]) == ("start", None)
    assert record["message"] == "bwrap: no permissions\nsee the manual"
    assert replica.said(kind="e") == ["bwrap: no permissions", "see the manual"]


def test_a_wrapper_that_is_not_there(replica: Replica) -> None:
    record = replica.run(["true"], keeper_argv=["no-such-wrapper"])
    assert record["reason"] == "start"
    assert "no-such-wrapper" in record["message"]


def test_a_stop_while_the_wrapper_hangs(replica: Replica) -> None:
    replica.prepare(["touch", "ran"], keeper_argv=["sh", "-c", "echo pulling; exec sleep 100"])
    replica.start()
    eventually(replica.log)
    replica.stop(20)
    record = replica.wait(10)
    assert (record["stopped"], record["reason"], record["code"]) == (True, None, None)
    assert not (replica.attempt / "ran").exists()


def test_a_long_path_is_no_obstacle(attempt: Path) -> None:
    deep = attempt / ("a" * 120)
    deep.mkdir()
    (deep / "agent").symlink_to(attempt / "agent")
    replica = Replica(deep)
    assert replica.run([sys.executable, "-c", "pass"])["code"] == 0
