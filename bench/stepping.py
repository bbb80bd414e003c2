"""A script whose ranks note the moment of each training step, and the measurements that read it."""

import json
import time
from pathlib import Path

SCRIPT = '''"""Two linear layers under DDP; notes the time of each step in STEPS."""

import json, os, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.randn(8, 64)).sum().backward()
    optimizer.step()
    if dist.get_rank() == 0:
        with open(os.environ["STEPS"], "a") as file:
            file.write(json.dumps({"at": time.time(), "step": step, "pid": os.getpid()}) + "\\n")
    time.sleep(0.05)
dist.destroy_process_group()
'''


def write_script(folder: Path) -> Path:
    """The script as a file."""
    path = folder / "step.py"
    path.write_text(SCRIPT)
    return path


def first_step_after(steps: Path, moment: float, timeout: float = 120.0) -> float:
    """Unix time of the first noted step of a process that was not there at `moment`."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if steps.exists():
            noted = [json.loads(line) for line in steps.read_text().splitlines() if line.endswith("}")]
            old = {n["pid"] for n in noted if n["at"] <= moment}
            for note in noted:
                if note["pid"] not in old and note["at"] > moment:
                    return float(note["at"])
        time.sleep(0.02)
    raise SystemExit(f"no step within {timeout:.0f} s")
