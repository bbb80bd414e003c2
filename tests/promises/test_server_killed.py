"""Kill the server at any instant: training goes on, nothing starts twice, no log line is lost, the truth is shown."""

import json
import os
import random
import signal
import time
from typing import Any

from tests.promises.place import Place, until

COUNTER = """
import sys, time
for number in range(int(sys.argv[1])):
    print("line", number, flush=True)
    time.sleep(0.01)
"""


def only(place: Place, name: str) -> Any:
    """The row of a workload."""
    (row,) = place.get(f"/workloads?filterBy=name=={name}")["workloads"]
    return row


def test_twenty_kills_of_the_server_during_one_job(own_place: Place) -> None:
    place = own_place
    script = place.script("counter.py", COUNTER)
    place.submit("count", f"python {script} 3000", workers=1)
    place.reach("count", "Running")
    folder = place.attempt_folder("count")
    started = {path: path.read_text() for path in folder.glob("*/started")}
    assert len(started) == 2
    chance = random.Random(7)
    for _ in range(20):
        time.sleep(chance.uniform(0.0, 0.4))
        place.kill()
        place.start()
    answered = time.monotonic()
    until(lambda: only(place, "count")["phase"] in ("Running", "Completed"), 2)
    assert time.monotonic() - answered < 2
    place.reach("count", "Completed")
    description = place.describe("count")
    assert len(description["attempts"]) == 1
    assert {path: path.read_text() for path in folder.glob("*/started")} == started, "nothing starts twice"
    for replica in ("master-0", "worker-0"):
        said = place.torchyard("logs", "count", "--replica", replica).stdout.split("\n")
        numbers = [int(line.rpartition(" ")[2]) for line in said if "line" in line]
        assert numbers == list(range(3000)), "no line is lost or doubled"


def test_what_ended_while_the_server_was_away_is_known_at_once(own_place: Place) -> None:
    place = own_place
    place.submit("short", "sh -c 'while ! test -e go; do sleep 0.02; done; exit 7'")
    place.reach("short", "Running")
    folder = place.attempt_folder("short")
    place.kill()
    (place.work / "go").touch()
    until(lambda: (folder / "worker-0" / "exit").read_bytes().strip())
    place.start()
    row = until(
        lambda: (w := place.get("/workloads?filterBy=name==short")["workloads"][0])["phase"] == "Failed" and w, 2
    )
    assert "exit 7" in row["phaseMessage"]


def test_failed_stays_failed_whatever_is_forgotten(own_place: Place) -> None:
    place = own_place
    place.submit("fails", "sh -c 'exit 1'", backoff=2)
    description = place.reach("fails", "Failed")
    assert [a["number"] for a in description["attempts"]] == [1, 2, 3]
    for folder in place.attempt_folder("fails").parent.iterdir():
        for path in sorted(folder.rglob("*"), reverse=True):
            path.unlink() if not path.is_dir() else path.rmdir()
        folder.rmdir()
    place.kill()
    place.start()
    assert place.phase("fails") == "Failed"
    assert len(place.describe("fails")["attempts"]) == 3
    place.torchyard("resume", "fails")
    until(lambda: len(place.describe("fails")["attempts"]) > 3)


def test_records_that_cannot_be_read_are_not_believed(own_place: Place) -> None:
    place = own_place
    place.submit("torn", "sleep 600")
    place.reach("torn", "Running")
    folder = place.attempt_folder("torn")
    supervisor = json.loads((folder / "worker-0" / "started").read_text())["pid"]
    place.kill()
    os.kill(supervisor, signal.SIGKILL)
    (folder / "worker-0" / "exit").write_bytes(b'0badcafe {"code": 0')
    (folder / "worker-0" / "status").write_bytes(b"\x00\xff{")
    place.start()
    until(lambda: len(place.describe("torn")["attempts"]) == 2)
    assert place.describe("torn")["attempts"][0]["cause"] == "supervisorLost"


def test_a_reboot_is_named(own_place: Place) -> None:
    place = own_place
    place.submit("boot", "sleep 600")
    place.reach("boot", "Running")
    started = place.attempt_folder("boot") / "worker-0" / "started"
    record = json.loads(started.read_text())
    place.kill()
    os.kill(record["pid"], signal.SIGKILL)
    # The pid may be in use again after a reboot, by somebody who is not to be signalled.
    started.write_text(json.dumps({**record, "boot_id": "another boot", "pid": os.getpid()}))
    place.start()
    until(lambda: len(place.describe("boot")["attempts"]) == 2)
    assert place.describe("boot")["attempts"][0]["cause"] == "reboot"
