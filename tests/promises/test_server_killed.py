"""Kill the server at any instant: training goes on, nothing starts twice, no log line is lost, the truth is shown."""

import random
import shutil
import threading
import time
from pathlib import Path

from tests.promises.place import Place, marked, until
from torchyard.client import logs
from torchyard.client.http import Server
from torchyard.client.logs import LogChoice

COUNTER = """
import pathlib, sys, time
print("begin", flush=True)
number = 0
while not pathlib.Path("enough").exists():
    number += 1
    print("line", number, flush=True)
    time.sleep(0.01)
print("last", number, flush=True)
"""
REPLICAS = ("master-0", "worker-0")
KILLS, ROUNDS, JOBS = 20, 3, 6
PROMISED = 2.0
"""Seconds from the next start to the truth."""


def shown(place: Place, name: str, phase: str) -> None:
    """A server that has just come up says so soon enough."""
    up = time.monotonic()
    until(lambda: place.row(name)["phase"] == phase, PROMISED)
    assert time.monotonic() - up < PROMISED


def grown(log: Path, records: int) -> None:
    """Wait until the log has so many records more."""
    goal = log.stat().st_size + records * len("1790000000000000 - o line 1000\n")
    until(lambda: log.stat().st_size >= goal)


def some(folder: Path, pattern: str, count: int) -> None:
    """Wait for so many files."""
    until(lambda: len(list(folder.glob(pattern))) >= count)


def follow(place: Place, name: str, replica: str, into: list[str]) -> threading.Thread:
    """Follow a log in the background, over all kills, as `logs -f` does."""
    identity = place.row(name)["id"]

    def read() -> None:
        with Server(place.address) as server:
            choice = LogChoice(replica=replica, follow=True)
            for event in logs.read(server, identity, choice, patience=60):
                if event.name == "line":
                    into.append(logs.line_of(event).text)

    thread = threading.Thread(target=read)
    thread.start()
    return thread


def test_twenty_kills_of_the_server_during_one_job(own_place: Place) -> None:
    place = own_place
    script = place.script("counter.py", COUNTER)
    place.submit("count", f"python {script}", workers=1)
    place.reach("count", "Running")
    folder, key = place.attempt_folder("count"), place.key("count")
    records = {path: path.read_text() for path in folder.glob("*/started")}
    pids = sorted(marked(key))
    assert len(records) == 2 and len(pids) == 6, "supervisor, keeper and command of each replica"
    followed: dict[str, list[str]] = {replica: [] for replica in REPLICAS}
    followers = [follow(place, "count", replica, lines) for replica, lines in followed.items()]
    chance = random.Random(7)
    for number in range(KILLS):
        grown(folder / "worker-0" / "log", chance.randrange(60))
        place.kill()
        place.launch()
        if number % 2:
            place.wait_up()
            shown(place, "count", "Running")
        assert sorted(marked(key)) == pids, "what trains is left alone"
    place.kill()
    place.start()
    shown(place, "count", "Running")
    assert {path: path.read_text() for path in folder.glob("*/started")} == records, "nothing starts twice"
    assert sorted(marked(key)) == pids
    (place.work / "enough").touch()
    place.reach("count", "Completed")
    assert len(place.attempts("count")) == 1
    for thread in followers:
        thread.join(60)
    for replica in REPLICAS:
        said = place.said("count", replica=replica)
        count = int(said[-1].removeprefix("last "))
        expected = ["begin", *(f"line {number}" for number in range(1, count + 1)), f"last {count}"]
        assert said == expected, "no line is lost or doubled"
        assert followed[replica] == expected, "nor for whom follows through all the kills"


def test_kills_while_jobs_are_being_launched(own_place: Place) -> None:
    place = own_place
    chance = random.Random(11)
    names = []
    for number in range(ROUNDS):
        fresh = [f"launch-{number}-{job}" for job in range(JOBS)]
        names += fresh
        for name in fresh:
            place.submit(name, "sh -c 'echo x >> $TORCHYARD_WORKLOAD'")
        begun = chance.randrange(JOBS)
        some(place.work, f"launch-{number}-*", begun)
        place.kill()
        place.start()
    for name in names:
        place.reach(name, "Completed")
        assert (place.work / name).read_text() == "x\n", "it ran once"
        assert len(place.attempts(name)) == 1


def test_what_ended_while_the_server_was_away_is_known_at_once(own_place: Place) -> None:
    place = own_place
    place.submit("good", "sh -c 'while ! test -e go; do sleep 0.02; done'")
    place.submit("bad", "sh -c 'while ! test -e go; do sleep 0.02; done; exit 7'")
    place.reach("good", "Running")
    place.reach("bad", "Running")
    records = [place.attempt_folder(name) / "worker-0" / "exit" for name in ("good", "bad")]
    place.kill()
    (place.work / "go").touch()
    until(lambda: all(record.read_bytes().strip() for record in records))
    place.start()
    shown(place, "good", "Completed")
    shown(place, "bad", "Failed")
    assert "exit 7" in place.row("bad")["phaseMessage"]


def test_failed_stays_failed_whatever_is_forgotten(own_place: Place) -> None:
    place = own_place
    place.submit("fails", "sh -c 'echo x >> runs; exit 1'", backoff=2)
    description = place.reach("fails", "Failed")
    assert [a["number"] for a in description["attempts"]] == [1, 2, 3]
    assert "backoffLimit 2 is used up" in description["phaseMessage"]
    shutil.rmtree(place.attempt_folder("fails").parent)
    place.kill()
    place.start()
    # Its turn would come before that of a younger one.
    place.submit("younger", "true")
    place.reach("younger", "Completed")
    assert place.row("fails")["phase"] == "Failed"
    assert len(place.attempts("fails")) == 3
    assert (place.work / "runs").read_text() == "x\n" * 3
    place.torchyard("resume", "fails")
    place.attempt("fails", 4)


def test_a_stop_that_the_server_died_over_is_carried_out(own_place: Place) -> None:
    place = own_place
    place.submit("ends", "sleep 600")
    place.reach("ends", "Running")
    key = place.key("ends")
    assert marked(key)
    place.stop("ends")
    place.kill()
    place.start()
    place.reach("ends", "Stopped")
    assert not marked(key)
