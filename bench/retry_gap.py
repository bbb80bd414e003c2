"""From the last replica's empty tree to the first process of the next attempt, without back-off."""

import json
import statistics
from pathlib import Path

from bench.figure import Figure
from bench.yard import Place, place

ROUNDS = 7


def measure() -> list[Figure]:
    """Two replicas that fail at once, tried again once."""
    with place() as here:
        gap = statistics.median(one(here, f"gap{number}") for number in range(ROUNDS))
    return [
        Figure(
            what="last replica's tree empty to the first process of the next attempt, no back-off",
            must="<= 0.3 s",
            stretch="0.1 s",
            measured=f"{gap:.3f} s",
            met=gap <= 0.3,
        )
    ]


def one(here: Place, name: str) -> float:
    """The gap between attempt 1 and attempt 2 of a workload, from the supervisors' own records."""
    spec = {
        "kind": "distributed",
        "name": name,
        "spec": {"command": "false", "numWorkers": 1, "backoffLimit": 1},
        "torchyard": {"isolation": "process"},
    }
    path = here.work / f"{name}.json"
    path.write_text(json.dumps(spec))
    here.torchyard("run", "-d", str(path))
    here.torchyard("wait", name, may_fail=True)
    workload = here.describe(name)["id"]
    (folder,) = (here.folder / "data").glob(f"projects/*/workloads/{workload}/attempts")
    return first_start(folder / "2") - last_end(folder / "1")


def last_end(attempt: Path) -> float:
    """Unix time of the latest exit record."""
    return max(json.loads(path.read_text().split(" ", 1)[1])["at"] for path in attempt.glob("*/exit"))


def first_start(attempt: Path) -> float:
    """Unix time of the earliest start record."""
    return min(json.loads(path.read_text())["at"] for path in attempt.glob("*/started"))
