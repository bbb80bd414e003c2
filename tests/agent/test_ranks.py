"""Which torchruns and ranks there were, and how and in what order they ended."""

import os
import shlex
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.agent.replicas import Replica, eventually

from torchyard.agent.ranks import looks_like_launcher
from torchyard.agent.terminate import targets
from torchyard.agent.tree import Process

Script = Callable[[str], list[str]]
WAIT = """
import os, signal, sys, time
rank = os.environ["RANK"]
open(f"ready-{rank}-{os.environ['TORCHELASTIC_RESTART_COUNT']}", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
"""


def two_ranks(replica: Replica, restart: int = 0) -> list[dict[str, Any]]:
    return eventually(
        lambda: (
            seen if len(seen := [rank for rank in replica.status()["ranks"] if rank["restart"] == restart]) == 2 else []
        )
    )


def test_the_record_tells_who_failed_first(replica: Replica, script: Script, torchrun: str) -> None:
    """Survivors of a kill end a moment later, with a failure of their own."""
    rank = script(WAIT + "while rank == '0' and not os.path.exists('hit'): time.sleep(0.01)\nsys.exit(3)\n")
    replica.prepare([torchrun, *rank], {"PET_REDIRECTS": "3"}, node_rank=1, nproc=2)
    replica.start()
    first, second = sorted(two_ranks(replica), key=lambda rank: rank["rank"])
    before = time.time()
    os.kill(second["pid"], signal.SIGKILL)
    (replica.attempt / "hit").touch()
    (replica.attempt / "go").touch()
    record = replica.wait()
    ends = {rank["rank"]: rank for rank in record["ranks"]}
    assert (ends[1]["signal"], ends[1]["code"]) == (signal.SIGKILL, None)
    assert before <= ends[1]["ended_at"] < before + 0.5
    assert ends[1]["ended_at"] <= ends[0]["ended_at"]
    assert ends[0]["started_at"] < before
    assert first["pid"] != second["pid"]
    launcher = record["launchers"][0]
    assert record["launchers"] == [launcher]
    assert launcher["launcher"] == ends[0]["launcher"] == 0
    assert launcher["started_at"] <= ends[0]["started_at"] + 0.02
    assert ends[0]["ended_at"] <= launcher["ended_at"]
    assert set(ends[0]) == {
        "launcher",
        "restart",
        "rank",
        "local_rank",
        "pid",
        "started_at",
        "ended_at",
        "code",
        "signal",
    }


def test_restarts_and_launchers_are_counted(replica: Replica, script: Script, torchrun: str) -> None:
    rank = script(
        "import os, sys, time\n"
        "turn = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "while not os.path.exists(f'go-{sys.argv[1]}-{turn}'): time.sleep(0.01)\n"
        "sys.exit(turn == '0')\n"
    )
    one, two = (shlex.join([torchrun, *rank, name]) for name in ("0", "1"))
    replica.prepare(["bash", "-c", f"{one} && {two}"], {"PET_MAX_RESTARTS": "1", "PET_REDIRECTS": "3"})
    replica.start()
    rounds = [(launcher, restart) for launcher in (0, 1) for restart in (0, 1)]
    for launcher, restart in rounds:
        _await(replica, launcher, restart)
        (replica.attempt / f"go-{launcher}-{restart}").touch()
    record = replica.wait()
    seen = sorted((rank["launcher"], rank["restart"], rank["rank"]) for rank in record["ranks"])
    assert seen == [(launcher, restart, rank) for launcher, restart in rounds for rank in (0, 1)]
    for rank in record["ranks"]:
        # The slower of two that fail may be asked to end by torchrun before it does.
        failed = rank["code"] == 1 or rank["signal"] == signal.SIGTERM
        assert failed if rank["restart"] == 0 else rank["code"] == 0
    assert [launcher["launcher"] for launcher in record["launchers"]] == [0, 1]
    assert record["code"] == 0


def _await(replica: Replica, launcher: int, restart: int) -> None:
    def there() -> bool:
        ranks = replica.status()["ranks"]
        return sum((rank["launcher"], rank["restart"]) == (launcher, restart) for rank in ranks) == 2

    eventually(there)


def test_a_launcher_by_another_name_is_known_by_its_children(replica: Replica, script: Script, torchrun: str) -> None:
    """What decides is the environment of the ranks, not the name of what starts them."""
    other = replica.attempt / "accelerate"
    other.write_bytes((replica.attempt / "torchrun").read_bytes())
    other.chmod(0o755)
    replica.prepare([str(other), *script(WAIT)])
    replica.start()
    two_ranks(replica)
    (replica.attempt / "go").touch()
    record = replica.wait()
    assert [launcher["pid"] for launcher in record["launchers"]] == [replica.status()["command_pid"]]
    assert [rank["code"] for rank in record["ranks"]] == [0, 0]


def test_helpers_of_a_rank_are_no_ranks(replica: Replica, script: Script, torchrun: str) -> None:
    rank = script(WAIT.replace("while", "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nwhile"))
    replica.prepare([torchrun, *rank])
    replica.start()
    two_ranks(replica)
    eventually(lambda: len(replica.alive()) >= 5)
    (replica.attempt / "go").touch()
    record = replica.wait()
    assert len(record["ranks"]) == 2
    assert record["left_behind"] == ["sleep", "sleep"]


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("torchrun train.py", True),
        ("/venv/bin/python3.11 /venv/bin/torchrun --nproc_per_node=2 train.py", True),
        ("python -u -X dev -m torch.distributed.run train.py", True),
        ("python3 -m torch.distributed.launch train.py", True),
        ("python train.py torchrun", False),
        ("python -m torchrun_tools", False),
        ("bash -c torchrun", False),
        ("grep torchrun", False),
        ("", False),
    ],
)
def test_the_command_line_of_a_launcher(line: str, verdict: bool) -> None:
    assert looks_like_launcher(line.split()) is verdict


def process(pid: int, parent: int, group: int, state: str = "S") -> Process:
    return Process(pid, "x", state, parent, group, pid, 0)


def test_everybody_is_asked_by_one_side_only() -> None:
    bash, tee, torchrun = process(10, 1, 10), process(11, 10, 10), process(12, 10, 10)
    rank, loader, stray = process(20, 12, 20), process(21, 20, 20), process(22, 1, 20)
    zombie, detached = process(30, 1, 30, "Z"), process(31, 1, 31)
    everybody = [bash, tee, torchrun, rank, loader, stray, zombie, detached]
    asked = targets(everybody, frozenset({12}), frozenset({20}), frozenset())
    assert [item.pid for item in asked] == [12, 10, 11, 31]
    again = targets(everybody, frozenset({12}), frozenset({20}), frozenset(item.key for item in asked))
    assert again == []
    without_launcher = targets([rank, loader, stray], frozenset(), frozenset(), frozenset())
    assert [item.pid for item in without_launcher] == [20, 21, 22]
