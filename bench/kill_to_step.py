"""From `kill -9` of a rank to the next new training step, against a fresh torchrun start to its first step."""

import os
import signal
import statistics
import time
from pathlib import Path

from bench.figure import Figure
from bench.first_step import first
from bench.stepping import first_step_after, write_script
from bench.yard import Place, place

ROUNDS = 5


def measure() -> list[Figure]:
    """One replica with two ranks, and two replicas with one rank each, in turns with plain starts."""
    one, two, fresh = [], [], []
    with place() as here:
        script = write_script(here.work)
        steps = here.folder / "steps"
        plain = ["torchrun", "--standalone", "--nproc-per-node", "2", str(script), "2"]
        first(here, plain, steps)
        for number in range(ROUNDS):
            fresh.append(first(here, plain, steps))
            one.append(kill(here, f"one{number}", script, replicas=1))
            two.append(kill(here, f"two{number}", script, replicas=2))
    base = statistics.median(fresh)
    single, double = statistics.median(one), statistics.median(two)
    return [
        Figure(
            what="`kill -9` of a rank, one replica, to the next new training step, against a fresh torchrun start",
            must="<= 1.25x",
            stretch="1.1x",
            measured=f"{single / base:.2f}x ({single:.2f} s / {base:.2f} s)",
            met=single <= 1.25 * base,
        ),
        Figure(
            what="the same with two replicas",
            must="<= 1.25x + 1.5 s",
            stretch="1.1x + 1.5 s",
            measured=f"{double:.2f} s / {base:.2f} s",
            met=double <= 1.25 * base + 1.5,
        ),
    ]


def kill(here: Place, name: str, script: Path, replicas: int) -> float:
    """Seconds from the kill to the first step of the next attempt."""
    steps = here.folder / f"steps-{name}"
    command = f"torchrun --nproc-per-node {3 - replicas} {script} 400"
    kind = ["-d", "--name", name, "-e", f"STEPS={steps}", "--backoff-limit", "3", "--isolation", "process"]
    if replicas == 2:
        kind += ["--workers", "1"]
    here.torchyard("run", *kind, "--", *command.split())
    first_step_after(steps, 0.0)
    time.sleep(0.5)
    ranks = [r for replica in here.describe(name)["attempts"][-1]["replicas"] for r in replica["ranks"]]
    victim = next(r["pid"] for r in ranks if r["rank"] == 1)
    moment = time.time()
    os.kill(victim, signal.SIGKILL)
    taken = first_step_after(steps, moment + 0.3) - moment
    here.torchyard("delete", name, "--yes")
    return taken
