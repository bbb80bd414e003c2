"""Once with the real torchrun."""

import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.replicas import Replica, eventually

Script = Callable[[str], list[str]]
TRAIN = """
import os, signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
open(f"ready-{os.environ['RANK']}", "w").close()
while not asked:
    time.sleep(0.01)
time.sleep(0.5)
print("asked", len(asked), "times", end="")
"""


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["PET_REDIRECTS", "PET_TEE"])
def test_stop_with_the_real_torchrun(replica: Replica, mode: str) -> None:
    (replica.attempt / "train.py").write_text(TRAIN)
    torchrun = Path(sys.executable).parent / "torchrun"
    env = {
        mode: "3",
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "\x1e[${rank}] ",
        "PET_STANDALONE": "1",
        "OMP_NUM_THREADS": "1",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "20",
    }
    line = shlex.join([str(torchrun), "--standalone", "train.py"])
    replica.prepare(["bash", "-c", f"{line}; echo not reached"], env)
    replica.start()
    eventually(lambda: len(replica.status()["ranks"]) == 2, 60)
    eventually(lambda: all((replica.attempt / f"ready-{rank}").exists() for rank in (0, 1)), 60)
    replica.stop(20)
    record = replica.wait(60)
    for rank in ("0", "1"):
        assert replica.said(rank) == [f"rank {rank} of 2", "asked 1 times"]
    assert [(rank["rank"], rank["code"]) for rank in record["ranks"]] == [(0, 0), (1, 0)]
    assert len(record["launchers"]) == 1
    assert (record["signal"], record["killed_after_grace"]) == (signal.SIGTERM, False)
    assert not replica.said()
    assert not replica.alive()
