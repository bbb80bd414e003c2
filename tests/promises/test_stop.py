"""Stop: each rank is asked once, its last words are kept, and after the grace nothing is left."""

from typing import Any

from tests.promises.place import Place, alive, marked, parent, until

RANK = """
import os, pathlib, signal, sys, time
rank = os.environ["RANK"]
place = pathlib.Path(os.environ["TORCHYARD_WORKLOAD"])
def asked(number, frame):
    with open(place / f"asked-{rank}", "a") as file:
        file.write("once\\n")
    print("last words of", rank, flush=True)
    if "stubborn" not in sys.argv:
        sys.exit(0)
signal.signal(signal.SIGTERM, asked)
(place / f"ready-{rank}").touch()
while True:
    time.sleep(0.05)
    if (place / f"asked-{rank}").exists():
        print("still here", flush=True)
"""


def run(place: Place, name: str, words: str, **more: Any) -> None:
    """Submit a `bash run.sh` with a torchrun in it, and wait for its ranks."""
    (place.work / name).mkdir()
    script = place.script("stoppable.py", RANK)
    place.script(f"{name}/run.sh", f"torchrun {script} {words}\n")
    place.submit(name, f"bash {name}/run.sh", **more)


def test_each_rank_is_asked_once_and_its_last_words_are_kept(place: Place) -> None:
    run(place, "asked", "", workers=1, spec={"compute": {"gpuDevicesRequest": 2}})
    ranks = place.ranks("asked", 4)
    until(lambda: len(list((place.work / "asked").glob("ready-*"))) == 4)
    place.torchyard("stop", "asked")
    place.torchyard("wait", "asked", code=130)
    said = place.said("asked")
    for rank in range(4):
        assert (place.work / "asked" / f"asked-{rank}").read_text() == "once\n"
        assert said.count(f"last words of {rank}") == 1
    assert not any(alive(rank["pid"]) for rank in ranks)
    assert place.row("asked")["phase"] == "Stopped"


def test_after_the_grace_nothing_is_left_though_bash_has_gone(place: Place) -> None:
    run(place, "stubborn", "stubborn", spec={"terminationGracePeriodSeconds": 4})
    (rank,) = place.ranks("stubborn")
    bash = parent(parent(rank["pid"]))
    key = place.key("stubborn")
    until((place.work / "stubborn" / "ready-0").exists)
    place.stop("stubborn")
    until((place.work / "stubborn" / "asked-0").exists)
    until(lambda: not alive(bash))
    assert alive(rank["pid"]), "it was given 4 s"
    place.reach("stubborn", "Stopped")
    assert not marked(key)
    said = place.said("stubborn", rank=0)
    assert said[0] == "last words of 0" and said[-1] == "still here"
    assert "still here" in said[1:], "what it said after bash had gone is in the log"
    (attempt,) = place.attempts("stubborn")
    assert "had not ended within the grace and was killed" in attempt["sentence"]


def test_torchrun_is_given_the_whole_grace(place: Place) -> None:
    name = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
    place.submit("grace", f"printenv {name}", spec={"terminationGracePeriodSeconds": 45})
    own = [{"name": name, "value": "7"}]
    place.submit("grace-own", f"printenv {name}", spec={"environmentVariables": own})
    place.reach("grace", "Completed")
    place.reach("grace-own", "Completed")
    assert place.said("grace") == ["45"]
    assert place.said("grace-own") == ["7"], "what the user says wins"
