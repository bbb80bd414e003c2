"""Something of a training is killed or fails: all of it ends, the cause is named, the next attempt is made or not."""

import json
import os
import signal
import time

import pytest

from tests.promises.place import Place, alive, marked, parent, supervisor, until

RANK = """
import os, sys, time
print("rank", os.environ["RANK"], "of attempt", os.environ["TORCHYARD_ATTEMPT_NUMBER"], flush=True)
if os.environ["TORCHYARD_ATTEMPT_NUMBER"] != "1":
    sys.exit(0)
while True:
    time.sleep(0.05)
"""
EMPTY_WITHIN = 4.0
"""Seconds; the promise is 2, which a busy machine may double."""


def kill_rank(place: Place, name: str, rank: int, count: int) -> None:
    victim = next(r for r in place.ranks(name, count) if r["rank"] == rank)
    os.kill(victim["pid"], signal.SIGKILL)


def empty(key: str) -> None:
    """The tree of an attempt is gone soon enough."""
    killed = time.monotonic()
    until(lambda: not any(map(alive, marked(key))), EMPTY_WITHIN)
    assert time.monotonic() - killed < EMPTY_WITHIN


def test_a_killed_rank_costs_one_attempt(place: Place) -> None:
    script = place.script("rank.py", RANK)
    place.submit("killed", f"torchrun {script}", workers=1, backoff=1)
    kill_rank(place, "killed", 1, 2)
    place.reach("killed", "Completed")
    first, second = place.attempts("killed")
    assert (first["cause"], second["number"]) == ("user", 2)
    assert "rank 1" in first["sentence"] and "SIGKILL" in first["sentence"]
    assert "rank 1 of attempt 2" in place.torchyard("logs", "killed", "--attempt", "2").stdout
    assert "rank 1 of attempt 1" in place.torchyard("logs", "killed", "--attempt", "1").stdout


def test_a_masked_exit_is_seen_and_retried(place: Place) -> None:
    script = place.script("rank.py", RANK)
    place.script("mask.sh", f"torchrun {script}\necho copied\n")
    place.submit("masked", "bash mask.sh", backoff=1)
    kill_rank(place, "masked", 0, 1)
    place.reach("masked", "Completed")
    first, _ = place.attempts("masked")
    assert first["cause"] == "maskedExit"
    assert "copied" in place.said("masked", attempt=1), "the script went on"


@pytest.mark.parametrize(
    ("victim", "cause"),
    [
        ("supervisor", "supervisorLost"),
        ("keeper", "supervisorLost"),
        ("torchrun", "maskedExit"),
        ("bash", "user"),
    ],
)
def test_nothing_is_left_whoever_is_killed(place: Place, victim: str, cause: str) -> None:
    script = place.script("rank.py", RANK)
    place.script("run.sh", f"torchrun {script}\ntrue\n")
    name = place.submit(f"kill-{victim}", "bash run.sh", backoff=1)
    (rank,) = place.ranks(name)
    key = place.key(name)
    chain = {"supervisor": supervisor(place.attempt_folder(name) / "worker-0"), "torchrun": parent(rank["pid"])}
    chain["bash"] = parent(chain["torchrun"])
    chain["keeper"] = parent(chain["bash"])
    assert parent(chain["keeper"]) == chain["supervisor"]
    os.kill(chain[victim], signal.SIGKILL)
    empty(key)
    place.reach(name, "Completed")
    verdict = place.explain(name)
    (told,) = [line for line in verdict["evidence"] if line.startswith("attempt 1 ended")]
    assert told.startswith(f"attempt 1 ended (cause {cause}): ")
    assert victim in told.partition(": ")[2]


def test_a_torchrun_that_is_killed_alone_leaves_no_rank(place: Place) -> None:
    script = place.script("rank.py", RANK)
    place.submit("alone", f"torchrun {script}")
    (rank,) = place.ranks("alone")
    key = place.key("alone")
    os.kill(parent(rank["pid"]), signal.SIGKILL)
    empty(key)
    place.reach("alone", "Failed")
    verdict = place.explain("alone")
    assert (verdict["cause"], verdict["fault"]["rank"], verdict["fault"]["signal"]) == ("user", None, signal.SIGKILL)


def test_three_equal_faults_end_it_early(place: Place) -> None:
    place.script("boom.py", "raise ValueError('boom at 0x7f00')")
    place.submit("equal", "python boom.py", backoff=10)
    assert len(place.reach("equal", "Failed")["attempts"]) == 3
    verdict = place.explain("equal")
    assert "3 times in a row" in verdict["sentence"]
    assert verdict["fault"]["exception"].startswith("ValueError: boom")
    assert "the same fault came 3 times in a row" in verdict["nextStep"]


def test_different_faults_use_the_whole_budget(place: Place) -> None:
    place.script("each.py", "import os, sys; sys.exit(int(os.environ['TORCHYARD_ATTEMPT_NUMBER']))")
    place.submit("each", "python each.py", backoff=3)
    assert [a["replicas"][0]["code"] for a in place.reach("each", "Failed")["attempts"]] == [1, 2, 3, 4]


def test_max_time_ends_it(place: Place) -> None:
    place.submit("timed", "sleep 600", maxTime="1s")
    assert place.reach("timed", "Failed")["attempts"][0]["cause"] == "deadline"


def test_whoever_waits_for_devices_is_told_why_and_gets_them(place: Place) -> None:
    devices = sum(len(node["devices"]) for node in json.loads(place.torchyard("node", "list", "-o", "json").stdout))
    place.submit("holder", "sleep 600", spec={"compute": {"gpuDevicesRequest": devices}})
    place.reach("holder", "Running")
    place.submit("waiter", "true", spec={"compute": {"gpuDevicesRequest": 1}})
    waits = place.reach("waiter", "Pending")
    assert f"needs 1 device, 0 of {devices} are free (holder holds {devices})" in waits["phaseMessage"]
    place.stop("holder")
    place.reach("waiter", "Completed")
