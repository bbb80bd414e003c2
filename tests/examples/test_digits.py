"""The digits example under real torchrun: kill it, resume it, continue it, and get in its way with files of others."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parents[2] / "examples" / "digits" / "multinode.py"
FIRST = {"TORCHYARD_WORKLOAD_ID": "id-1", "TORCHYARD_WORKLOAD": "first", "TORCHYARD_ATTEMPT": "id-1-1"}
SECOND = {"TORCHYARD_WORKLOAD_ID": "id-2", "TORCHYARD_WORKLOAD": "second", "TORCHYARD_ATTEMPT": "id-2-1"}


@pytest.fixture(scope="module")
def multinode() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_multinode", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Training:
    """A torchrun, and the lines that came so far."""

    process: subprocess.Popen[str]
    lines: list[str]

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if text in line:
                return
        raise AssertionError(f"no {text!r} in:\n" + "\n".join(self.lines))

    def kill(self) -> None:
        """kill -9 of torchrun and its ranks (each in a session of its own), until the last of them is gone."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        ranks = [int(pid) for file in children for pid in file.read_text().split()]
        self.process.kill()
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.lines += [line.rstrip("\n") for line in self.process.stdout]

    def finish(self) -> list[str]:
        assert self.process.stdout is not None
        self.lines += [line.rstrip("\n") for line in self.process.stdout]
        assert self.process.wait() == 0, "\n".join(self.lines)
        return self.lines


Torchrun = Callable[..., Training]


@pytest.fixture
def torchrun(tmp_path: Path) -> Iterator[Torchrun]:
    started: list[Training] = []

    def start(*args: str, ranks: int = 2, folder: Path = tmp_path, env: dict[str, str] | None = None) -> Training:
        bare = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHYARD_", "PET_", "CUDA_VISIBLE"))}
        argv = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
        process = subprocess.Popen(
            [*argv, str(SCRIPT), "--batch_size", "32", *args],
            cwd=folder,
            env=bare | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"} | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(Training(process, []))
        return started[-1]

    yield start
    for training in started:
        if training.process.poll() is None:
            training.kill()
        assert training.process.stdout is not None
        training.process.stdout.close()


def epochs(lines: list[str], rank: int) -> list[str]:
    return [line.split()[2] for line in lines if line.startswith(f"[CPU{rank}] epoch ")]


def read(path: Path) -> dict[str, Any]:
    import torch

    snapshot: dict[str, Any] = torch.load(path, weights_only=True)
    return snapshot


def same_weights(one: dict[str, Any], other: dict[str, Any]) -> bool:
    import torch

    return all(torch.equal(one["model"][name], other["model"][name]) for name in one["model"] | other["model"])


@pytest.mark.timeout(300)
def test_a_killed_run_ends_with_the_weights_of_one_that_was_left_alone(tmp_path: Path, torchrun: Torchrun) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    alone.mkdir()
    killed.mkdir()
    lines = torchrun("30", "10", folder=alone).finish()
    assert epochs(lines, 0) == epochs(lines, 1) == [f"{n}/30" for n in range(1, 31)]
    assert all("| loss " in line for line in lines if "epoch" in line)
    (accuracy,) = (float(line.split()[-1]) for line in lines if line.startswith("test accuracy "))
    assert accuracy > 0.95

    training = torchrun("30", "10", folder=killed)
    training.read_until("epoch 13/30")
    training.kill()
    assert not any("test accuracy" in line for line in training.lines)
    saved = read(killed / "snapshot.pt")["epoch"]
    assert saved in (10, 20)
    ours, theirs = killed / ".snapshot.pt.local.0.tmp", killed / ".snapshot.pt.id-1.0.tmp"
    ours.write_bytes(b"PK half a save")
    theirs.write_bytes(b"PK somebody else's")

    lines = torchrun("30", "10", folder=killed).finish()
    assert f"resuming from snapshot at epoch {saved} (snapshot.pt)" in lines
    assert epochs(lines, 0) == epochs(lines, 1) == [f"{n}/30" for n in range(saved + 1, 31)]
    assert same_weights(read(alone / "snapshot.pt"), read(killed / "snapshot.pt"))
    assert {path.name for path in killed.iterdir()} == {"snapshot.pt", theirs.name}


@pytest.mark.timeout(300)
def test_a_second_workload_continues_the_first_with_another_learning_rate(tmp_path: Path, torchrun: Torchrun) -> None:
    claim = {"TORCHYARD_VOLUME_CHECKPOINTS": str(tmp_path)}
    path = tmp_path / "snapshot.pt"
    path.write_bytes(b"PK\x03\x04 torn")
    lines = torchrun("2", "1", "--snapshot", str(path), ranks=1, env=FIRST | claim).finish()
    assert f"{path} is torn, or no snapshot at all: kept as {tmp_path / 'snapshot-unreadable.pt'}" in lines
    assert epochs(lines, 0) == ["1/2", "2/2"]
    assert (tmp_path / "snapshot-unreadable.pt").read_bytes() == b"PK\x03\x04 torn"
    first, first_bytes = read(path), path.read_bytes()
    assert first["written_by"] == {"workload_id": "id-1", "workload": "first", "attempt": "id-1-1"}
    assert first["optimizer"]["param_groups"][0]["lr"] == 0.001

    second = SECOND | claim | {"TORCHYARD_RESUME_FROM": str(path)}
    lines = torchrun("1", "1", "--lr", "0.0005", "--snapshot", str(path), env=second).finish()
    assert f"continuing from {path} (epoch 2 of workload first)" in lines
    assert epochs(lines, 0) == epochs(lines, 1) == ["3/3"]
    assert (tmp_path / "snapshot-first.pt").read_bytes() == first_bytes
    continued = read(path)
    assert continued["written_by"]["workload"] == "second"
    assert (continued["epoch"], continued["started_from"], continued["world_size"]) == (3, 2, 2)
    assert continued["optimizer"]["param_groups"][0]["lr"] == 0.0005
    assert continued["optimizer"]["state"][0]["step"] == 45 + 45 + 23  # steps of one rank, then of two: Adam goes on
    assert not same_weights(first, continued)

    again = second | {"TORCHYARD_ATTEMPT": "id-2-2"}
    lines = torchrun("2", "1", "--snapshot", str(path), ranks=1, env=again).finish()
    assert f"resuming from snapshot at epoch 3 ({path})" in lines
    assert epochs(lines, 0) == ["4/4"]
    assert read(path)["optimizer"]["param_groups"][0]["lr"] == 0.0005
    assert {p.name for p in tmp_path.iterdir()} == {"snapshot.pt", "snapshot-first.pt", "snapshot-unreadable.pt"}


@pytest.mark.parametrize(
    ("place", "rank", "local_rank", "writes"),
    [
        ("claim/snapshot.pt", 0, 0, True),
        ("claim/deep/snapshot.pt", 2, 0, False),
        ("claim/snapshot.pt", 1, 1, False),
        ("work/snapshot.pt", 0, 0, True),
        ("work/snapshot.pt", 2, 0, True),
        ("work/snapshot.pt", 1, 1, False),
        ("claim-2/snapshot.pt", 2, 0, True),
        ("link/snapshot.pt", 2, 0, False),
    ],
)
def test_who_writes(
    tmp_path: Path, multinode: ModuleType, place: str, rank: int, local_rank: int, writes: bool
) -> None:
    (tmp_path / "claim").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "claim")
    env = {"TORCHYARD_VOLUME_CHECKPOINTS": str(tmp_path / "claim"), "TORCHYARD_VOLUME_NONE": "", "HOME": str(tmp_path)}
    assert multinode.saves(tmp_path / place, rank, local_rank, env) is writes


def snapshot(epoch: int) -> dict[str, Any]:
    return {"epoch": epoch, "started_from": 0, "world_size": 1, "model": {}, "optimizer": {}, "random": [{}]}


def test_only_the_writer_resumes(tmp_path: Path, multinode: ModuleType) -> None:
    path = tmp_path / "snapshot.pt"
    assert multinode.settle(path, FIRST) is None
    multinode.save(snapshot(5), path, FIRST)
    assert multinode.settle(path, FIRST)["epoch"] == 5
    assert multinode.settle(path, SECOND) is None
    assert multinode.settle(path, {}) is None
    assert multinode.starting_point(path, None, SECOND) is None
    assert path.exists()


def test_snapshots_of_others_are_never_destroyed(tmp_path: Path, multinode: ModuleType) -> None:
    path = tmp_path / "snapshot.pt"
    for epoch, env in enumerate([FIRST, SECOND, SECOND, FIRST, {}, SECOND]):
        multinode.settle(path, env)
        multinode.save(snapshot(epoch), path, env)
    kept = {p.name: read(p)["epoch"] for p in tmp_path.iterdir()}
    assert kept == {
        "snapshot.pt": 5,
        "snapshot-first.pt": 0,
        "snapshot-second.pt": 2,
        "snapshot-first-2.pt": 3,
        "snapshot-unnamed.pt": 4,
    }


def test_keeps_a_copy_where_there_are_no_hard_links(
    tmp_path: Path, multinode: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("this file system has no hard links")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "snapshot.pt"
    multinode.save(snapshot(0), path, FIRST)
    for _ in range(2):
        multinode.settle(path, SECOND)
    multinode.save(snapshot(1), path, SECOND)
    assert {p.name: read(p)["epoch"] for p in tmp_path.iterdir()} == {"snapshot.pt": 1, "snapshot-first.pt": 0}


def damaged(whole: bytes, weights: bytes) -> Iterator[bytes]:
    for size in range(0, len(whole), 97):
        yield whole[:size]
    for start in range(0, len(weights), 32):
        yield whole.replace(weights, weights[:start] + bytes(32) + weights[start + 32 :])
    yield b"hello"
    yield b"\x80\x04."


def test_a_damaged_file_is_set_aside_whatever_happened_to_it(tmp_path: Path, multinode: ModuleType) -> None:
    import torch

    path, kept = tmp_path / "snapshot.pt", tmp_path / "snapshot-unreadable.pt"
    weights = torch.rand(64)
    multinode.save(snapshot(1) | {"model": {"weight": weights}}, path, FIRST)
    whole = path.read_bytes()
    for torn in damaged(whole, weights.numpy().tobytes()):
        assert torn != whole
        path.write_bytes(torn)
        assert multinode.settle(path, FIRST) is None
        assert not path.exists()
        assert kept.read_bytes() == torn
        kept.unlink()


def test_asked_to_continue_from_nothing_it_does_not_start_over(tmp_path: Path, multinode: ModuleType) -> None:
    missing = tmp_path / "other.pt"
    env = SECOND | {"TORCHYARD_RESUME_FROM": str(missing)}
    with pytest.raises(SystemExit, match=r"cannot continue from .*other\.pt"):
        multinode.starting_point(tmp_path / "snapshot.pt", None, env)
    missing.write_bytes(b"torn")
    with pytest.raises(SystemExit, match="is torn"):
        multinode.starting_point(tmp_path / "snapshot.pt", None, env)


def test_run_sh_says_which_claim_is_missing(tmp_path: Path) -> None:
    shutil.copy(SCRIPT.with_name("run.sh"), tmp_path)
    bare = {name: value for name, value in os.environ.items() if not name.startswith("TORCHYARD_")}
    done = subprocess.run(["bash", "run.sh"], check=False, cwd=tmp_path, env=bare, capture_output=True, text=True)
    assert done.returncode != 0
    assert "--existing-pvc claimname=checkpoints" in done.stderr
