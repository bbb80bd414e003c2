"""The main job with real torch: two replicas, a rank killed, resumed, continued by another workload.

And the tutorial's own run.sh, whose snapshot lives in the working folder."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.place import Place, until

pytestmark = [pytest.mark.torch, pytest.mark.timeout(900)]
DIGITS = Path(__file__).parent.parent.parent / "examples" / "digits"
LONG = 300.0
TUTORIAL = """#!/bin/bash

torchrun multinode.py --batch_size 32 8 2
cp snapshot.pt /checkpoints
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place where torchrun is the real one, with a claim."""
    here = Place(tmp_path_factory.mktemp("digits"))
    (here.data.parent / "bin" / "torchrun").unlink()
    here.start()
    for claim in ("checkpoints", "tutorial"):
        here.torchyard("pvc", "create", claim, "--size", "10TB", "--access-mode", "RWX", "--path", "/checkpoints")
    yield here
    here.end()


def submit(place: Place, name: str, run_sh: str, claim: str, *more: str) -> None:
    """As the tutorial does it: one worker, one device each, in a sandbox, since the claim has a path."""
    code = place.work / name
    shutil.copytree(DIGITS, code)
    (code / "run.sh").write_text(run_sh)
    flags = ("--workers", "1", "-g", "1", "--code", str(code), "--existing-pvc", f"claimname={claim},path=/checkpoints")
    words = more or ("bash", "run.sh")
    place.torchyard("training", "pytorch", "submit", name, *flags, "--command", "--", *words)


def kill_rank_1(place: Place, name: str, after: str) -> None:
    """kill -9 once the log says so."""
    until(lambda: after in place.torchyard("logs", name, code=None).stdout, LONG)
    os.kill(next(r["pid"] for r in place.ranks(name) if r["rank"] == 1), signal.SIGKILL)


def test_killed_resumed_and_continued(place: Place) -> None:
    run_sh = (DIGITS / "run.sh").read_text().replace(" 100 25", " 30 4")
    submit(place, "ddp", run_sh, "checkpoints")
    kill_rank_1(place, "ddp", "epoch 6/30")
    place.torchyard("wait", "ddp")
    said = place.torchyard("logs", "ddp", "--attempt", "2").stdout
    assert "resuming from snapshot at epoch" in said
    accuracy = float(said.rpartition("test accuracy ")[2].split()[0])
    assert accuracy > 0.95
    (found,) = json.loads(place.torchyard("checkpoint", "list", "ddp", "-o", "json").stdout)
    assert (found["path"], found["complete"], found["attempt"]) == ("snapshot.pt", True, 2)
    place.torchyard("checkpoint", "download", "ddp", "snapshot.pt")
    assert (place.work / "snapshot.pt").stat().st_size == found["size"]

    code = place.work / "ddp"
    (code / "run.sh").write_text(run_sh.replace(" 30 4", " 3 1"))
    flags = ("--workers", "1", "-g", "1", "--code", str(code), "--resume-from", "ddp")
    claim = ("--existing-pvc", "claimname=checkpoints,path=/checkpoints")
    command = ("bash", "-c", "bash run.sh --lr 0.0005")
    place.torchyard("training", "pytorch", "submit", "further", *flags, *claim, "--command", "--", *command)
    place.torchyard("wait", "further")
    said = place.torchyard("logs", "further").stdout
    assert "continuing from" in said and "epoch 30" in said
    kept = json.loads(place.torchyard("checkpoint", "list", "ddp", "-o", "json").stdout)
    assert {c["path"] for c in kept} == {"snapshot.pt", "snapshot-ddp.pt"}, "the first one's snapshot is kept"


def test_the_tutorials_own_run_sh(place: Place) -> None:
    submit(place, "tutorial", TUTORIAL, "tutorial")
    kill_rank_1(place, "tutorial", "epoch 4/8")
    place.torchyard("wait", "tutorial")
    description = place.describe("tutorial")
    assert description["attempts"][0]["cause"] == "maskedExit"
    assert "DidNotResume" in {event["reason"] for event in description["events"]}
    assert place.torchyard("pvc", "ls", "tutorial:/", "-o", "name").stdout.split() == ["snapshot.pt"]
