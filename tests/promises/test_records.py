"""Records that are torn or lie, pids used again, a restarted machine, a clock that was set back: what is not so is not
believed, and nobody else is hurt."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.place import Place, alive, marked, supervisor, until

FOREVER = """
import os, pathlib, time
while not pathlib.Path(os.environ["TORCHYARD_WORKLOAD"]).exists():
    time.sleep(0.02)
"""
"""Runs until there is a file of its name."""


@pytest.fixture
def innocent() -> Iterator[int]:
    """A process that has nothing to do with us."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n", timeout=20)
    assert process.returncode == 0, "it was hurt"


def test_a_dead_attempt_is_known_as_such_whatever_its_records_say(own_place: Place, innocent: int) -> None:
    place = own_place

    def lie(**changes: object) -> bytes:
        return json.dumps({**known, **changes}).encode()

    script = place.script("forever.py", FOREVER)
    expected = {"exit": "supervisorLost", "started": "supervisorLost", "pid": "supervisorLost", "boot": "reboot"}
    for name in expected:
        place.submit(name, f"python {script}")
    for name in expected:
        place.reach(name, "Running")
    folders = {name: place.attempt_folder(name) / "worker-0" for name in expected}
    keys = {name: place.key(name) for name in expected}
    place.kill()
    for folder in folders.values():
        os.kill(supervisor(folder), signal.SIGKILL)
    until(lambda: not any(marked(key) for key in keys.values()))
    known = json.loads((folders["pid"] / "started").read_text())
    (folders["exit"] / "exit").write_bytes(b'0badcafe {"code": 0')
    (folders["exit"] / "status").write_bytes(b"\x00\xff{")
    (folders["started"] / "started").write_bytes(b"")
    (folders["pid"] / "started").write_bytes(lie(pid=innocent))
    (folders["boot"] / "started").write_bytes(lie(pid=innocent, boot_id="another boot"))
    place.start()
    for name, cause in expected.items():
        place.attempt(name, 2)
        assert place.cause(name) == cause, name
        (place.work / name).touch()
        place.reach(name, "Completed")


def test_a_running_attempt_is_seen_whatever_its_records_say(own_place: Place) -> None:
    place = own_place
    script = place.script("forever.py", FOREVER)
    names = ("status", "torn", "attempt")
    for name in names:
        place.submit(f"runs-{name}", f"python {script}")
    for name in names:
        place.reach(f"runs-{name}", "Running")
    folders = {name: place.attempt_folder(f"runs-{name}") for name in names}
    pids = {name: sorted(marked(place.key(f"runs-{name}"))) for name in names}
    place.kill()
    (folders["status"] / "worker-0" / "status").write_bytes(b"\x00\xff{")
    (folders["torn"] / "worker-0" / "started").write_bytes(b'{"format": 1, "pi')
    (folders["attempt"] / "attempt.json").write_bytes(b"\x00" * 64)
    place.start()
    for name in ("status", "torn"):
        assert place.row(f"runs-{name}")["phase"] == "Running"
        assert sorted(marked(place.key(f"runs-{name}"))) == pids[name]
    place.stop("runs-torn")
    place.reach("runs-torn", "Stopped")
    assert not any(map(alive, pids["torn"])), "its supervisor was found by its lock"
    (place.work / "runs-status").touch()
    place.reach("runs-status", "Completed")
    # What cannot be known is ended before it is launched again: never do two attempts run.
    place.attempt("runs-attempt", 2)
    assert not any(map(alive, pids["attempt"]))
    place.stop("runs-attempt", 0)


SKEWED = """
import datetime, os, pathlib, sys
from torchyard.control import turn
clock = turn.now
def now():
    return clock() + datetime.timedelta(seconds=float(pathlib.Path(os.environ["SKEW"]).read_text()))
turn.now = now
from torchyard.cli.main import main
sys.argv = ["torchyard", "server", "run"]
main()
"""
"""A server whose clock is as wrong as a file says; the supervisors keep the machine's."""


def test_a_clock_that_is_set_back_makes_nobody_wait(tmp_path: Path) -> None:
    skew = tmp_path / "skew"
    skew.write_text("3600")
    place = Place(tmp_path / "place", SKEW=str(skew))
    place.program = ["-c", SKEWED]
    place.start()
    try:
        place.submit("goes-on", f"python {place.script('forever.py', FOREVER)}")
        place.submit("timed", "sleep 600", maxTime="8s")
        place.script("each.py", "import os, sys; sys.exit(int(os.environ['TORCHYARD_ATTEMPT_NUMBER']))")
        place.reach("goes-on", "Running")
        place.reach("timed", "Running")
        place.submit("retries", "python each.py", backoff=4)
        until(lambda: (now := place.row("retries"))["phase"] == "Resuming" and now["attempt"] >= 3)
        fresh = skew.with_name("fresh")
        fresh.write_text("0")
        fresh.replace(skew)
        assert len(place.reach("retries", "Failed")["attempts"]) == 5
        assert place.reach("timed", "Failed")["attempts"][0]["cause"] == "deadline"
        assert place.row("goes-on")["phase"] == "Running"
        assert len(place.attempts("goes-on")) == 1
        place.submit("later", "true")
        place.reach("later", "Completed")
        (place.work / "goes-on").touch()
        place.reach("goes-on", "Completed")
    finally:
        place.end()
