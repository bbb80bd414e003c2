"""Something of a training is killed or fails: all of it ends, the cause is named, the next attempt is made or not."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.promises.place import Place, marked, until

RANK = """
import os, pathlib, signal, sys, time
rank = os.environ["RANK"]
def asked(number, frame):
    with open(f"asked-{rank}", "a") as file:
        file.write("once\\n")
    print("last words of", rank, flush=True)
    if "stubborn" not in sys.argv:
        sys.exit(0)
signal.signal(signal.SIGTERM, asked)
print("rank", rank, "of attempt", os.environ["TORCHYARD_ATTEMPT_NUMBER"], flush=True)
if os.environ["TORCHYARD_ATTEMPT_NUMBER"] != "1" and "again" not in sys.argv:
    sys.exit(0)
while True:
    time.sleep(0.05)
"""


def ranks(place: Place, name: str, count: int) -> list[dict[str, int]]:
    """All ranks, once there are so many of them."""
    return until(lambda: len(found := place.ranks(name)) == count and found)  # type: ignore[no-any-return]


def test_a_killed_rank_costs_one_attempt(place: Place) -> None:
    script = place.script("rank.py", RANK)
    place.submit("killed", f"torchrun {script}", workers=1, backoff=1)
    victim = next(r for r in ranks(place, "killed", 2) if r["rank"] == 1)
    os.kill(victim["pid"], signal.SIGKILL)
    place.reach("killed", "Completed")
    first, second = place.describe("killed")["attempts"]
    assert (first["cause"], second["number"]) == ("user", 2)
    assert "rank 1" in first["sentence"] and "SIGKILL" in first["sentence"]
    assert "rank 1 of attempt 2" in place.torchyard("logs", "killed", "--attempt", "2").stdout


def test_a_masked_exit_is_seen_and_retried(place: Place) -> None:
    script = place.script("rank.py", RANK)
    (place.work / "mask.sh").write_text(f"torchrun {script}\necho copied\n")
    place.submit("masked", "bash mask.sh", backoff=1)
    (victim,) = ranks(place, "masked", 1)
    os.kill(victim["pid"], signal.SIGKILL)
    place.reach("masked", "Completed")
    first, _ = place.describe("masked")["attempts"]
    assert first["cause"] == "maskedExit"


@pytest.mark.parametrize("victim", ["supervisor", "keeper", "torchrun", "bash"])
def test_nothing_is_left_whoever_is_killed(place: Place, victim: str) -> None:
    script = place.script("rank.py", RANK)
    (place.work / "run.sh").write_text(f"torchrun {script} again\ntrue\n")
    name = place.submit(f"kill-{victim}", "bash run.sh", backoff=0)
    (rank,) = ranks(place, name, 1)
    folder = place.attempt_folder(name)
    key = f"{place.describe(name)['id']}-1"
    supervisor = json.loads((folder / "worker-0" / "started").read_text())["pid"]
    chain = {"supervisor": supervisor, "torchrun": parent(rank["pid"])}
    chain["bash"] = parent(chain["torchrun"])
    chain["keeper"] = parent(chain["bash"])
    assert parent(chain["keeper"]) == supervisor
    os.kill(chain[victim], signal.SIGKILL)
    begin = time.monotonic()
    until(lambda: not [pid for pid in marked(key) if alive(pid)], 10)
    assert time.monotonic() - begin < 4, "the promise is 2 s; a busy machine may double it"
    lost = victim in ("supervisor", "keeper")
    until(lambda: place.describe(name)["attempts"][0].get("cause"))
    cause = "supervisorLost" if lost else "maskedExit" if victim == "torchrun" else "user"
    assert place.describe(name)["attempts"][0]["cause"] == cause
    place.torchyard("stop", name, code=None)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_three_equal_faults_end_it_early(place: Place) -> None:
    place.script("boom.py", "raise ValueError('boom at 0x7f00')")
    place.submit("equal", "python boom.py", backoff=10)
    description = place.reach("equal", "Failed")
    assert len(description["attempts"]) == 3
    verdict = place.explain("equal")
    assert "3 times in a row" in verdict["sentence"] + " ".join(verdict["evidence"]) + verdict["nextStep"]
    assert verdict["fault"]["exception"].startswith("ValueError: boom")


def test_one_failed_replica_ends_the_others(place: Place) -> None:
    text = "import os, sys, time\nif os.environ['TORCHYARD_REPLICA'] == 'worker-0': sys.exit(9)\ntime.sleep(600)"
    place.script("half.py", text)
    place.submit("half", "python half.py", workers=1)
    place.reach("half", "Failed")
    verdict = place.explain("half")
    assert (verdict["fault"]["replica"], verdict["fault"]["code"]) == ("worker-0", 9)
    assert place.torchyard("wait", "half", code=9)


def test_stop_is_sigterm_once_and_last_words(place: Place) -> None:
    script = place.script("rank.py", RANK)
    (place.work / "run.sh").write_text(f"torchrun {script} again\n")
    place.submit("stops", "bash run.sh", spec={"compute": {"gpuDevicesRequest": 2}})
    ranks(place, "stops", 2)
    for path in place.work.glob("asked-*"):
        path.unlink()
    place.torchyard("stop", "stops")
    place.torchyard("wait", "stops", code=130)
    for rank in ("0", "1"):
        assert (place.work / f"asked-{rank}").read_text() == "once\n"
        assert f"last words of {rank}" in place.torchyard("logs", "stops").stdout


def test_after_the_grace_nothing_is_left(place: Place) -> None:
    script = place.script("rank.py", RANK)
    (place.work / "run.sh").write_text(f"torchrun {script} again stubborn\n")
    place.submit("stubborn", "bash run.sh", spec={"terminationGracePeriodSeconds": 1})
    (rank,) = ranks(place, "stubborn", 1)
    place.torchyard("stop", "stubborn")
    place.torchyard("wait", "stubborn", code=130)
    assert not alive(rank["pid"])


def test_max_time_ends_it(place: Place) -> None:
    place.submit("timed", "sleep 600", maxTime="1s")
    description = place.reach("timed", "Failed")
    assert description["attempts"][0]["cause"] == "deadline"


def test_whoever_waits_for_devices_is_told_why_and_gets_them(place: Place) -> None:
    devices = sum(len(node["devices"]) for node in json.loads(place.torchyard("node", "list", "-o", "json").stdout))
    place.submit("holder", "sleep 600", spec={"compute": {"gpuDevicesRequest": devices}})
    place.reach("holder", "Running")
    place.submit("waiter", "true", spec={"compute": {"gpuDevicesRequest": 1}})
    waits = place.reach("waiter", "Pending")
    assert f"needs 1 device, 0 of {devices} are free (holder holds {devices})" in waits["phaseMessage"]
    place.torchyard("stop", "holder")
    place.reach("waiter", "Completed")
