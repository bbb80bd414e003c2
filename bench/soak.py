"""The long repetitions: a rank of the digits training is killed again and again; each time the next attempt resumes.

`python -m bench.soak [TIMES]`; prints how many of them resumed from the snapshot and completed.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

from bench.yard import Place, place

DIGITS = Path(__file__).parent.parent / "examples" / "digits"
TIMES = 20


def main() -> None:
    """Kill and count."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    good = 0
    with place() as here:
        here.torchyard(
            "pvc", "create", "checkpoints", "--size", "10TB", "--access-mode", "RWX", "--path", "/checkpoints"
        )
        code = here.work / "digits"
        shutil.copytree(DIGITS, code)
        (code / "run.sh").write_text((code / "run.sh").read_text().replace(" 100 25", " 12 4"))
        for number in range(times):
            good += once(here, code, f"digits{number}")
            print(f"{number + 1} of {times}: {good} resumed and completed", flush=True)
    if good < times:
        raise SystemExit(f"only {good} of {times}")


def once(here: Place, code: Path, name: str) -> bool:
    """Train, kill rank 1 after the first snapshot, wait for the end."""
    words = (
        "training",
        "pytorch",
        "submit",
        name,
        "--workers",
        "1",
        "-g",
        "1",
        "--code",
        str(code),
        "--isolation",
        "process",
    )
    claim = ("--existing-pvc", "claimname=checkpoints,path=/checkpoints")
    here.torchyard(*words, *claim, "--command", "--", "bash", "run.sh")
    end = time.monotonic() + 300
    while "epoch 5/12" not in here.torchyard("logs", name, may_fail=True):
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    ranks = [r for replica in here.describe(name)["attempts"][-1]["replicas"] for r in replica["ranks"]]
    os.kill(next(r["pid"] for r in ranks if r["rank"] == 1), signal.SIGKILL)
    here.torchyard("wait", name, may_fail=True)
    resumed = "resuming from snapshot at epoch" in here.torchyard("logs", name, "--attempt", "2")
    completed = here.describe(name)["phase"] == "Completed"
    here.torchyard("delete", name, "--yes")
    return resumed and completed


if __name__ == "__main__":
    main()
