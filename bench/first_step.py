"""First training step of `torchyard run --nproc-per-node 2` against plain torchrun."""

import subprocess
import time
from pathlib import Path

from bench.figure import Figure, in_turns
from bench.stepping import first_step_after, write_script
from bench.yard import TORCHYARD, Place, place

ROUNDS = 7


def measure() -> list[Figure]:
    """From typing the command to the first step, in turns."""
    with place() as here:
        script = write_script(here.work)
        steps = here.folder / "steps"
        plain = ["torchrun", "--standalone", "--nproc-per-node", "2", str(script), "2"]
        ours = [TORCHYARD, "run", "--nproc-per-node", "2", str(script), "2"]
        first(here, plain, steps)
        theirs_taken, ours_taken = in_turns(ROUNDS, lambda: first(here, plain, steps), lambda: first(here, ours, steps))
    ratio = ours_taken / theirs_taken
    return [
        Figure(
            what="first training step of `torchyard run --nproc-per-node 2` against plain `torchrun`",
            must="<= 1.10x",
            stretch="<= 1.0x",
            measured=f"{ratio:.2f}x ({ours_taken:.2f} s / {theirs_taken:.2f} s)",
            met=ratio <= 1.10,
        )
    ]


def first(here: Place, argv: list[str], steps: Path) -> float:
    """Seconds from starting the command to its first step."""
    env = {**here.env, "STEPS": str(steps)}
    begin = time.time()
    with subprocess.Popen(
        argv, env=env, cwd=here.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        taken = first_step_after(steps, begin) - begin
        process.wait()
    return taken
