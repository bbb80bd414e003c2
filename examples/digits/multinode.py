"""Trains a classifier of handwritten digits with DistributedDataParallel, and goes on where it was killed.

Plain PyTorch: of torchyard it only reads TORCHYARD_* variables, and it runs as well where there are none.
"""

import argparse
import filecmp
import itertools
import os
import pickle
import random
import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.optim import Adam, Optimizer
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    args = arguments()
    rank, local_rank, world_size = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    writer = saves(args.snapshot, rank, local_rank, os.environ)
    own = settle(args.snapshot, os.environ) if writer else None
    chosen = [starting_point(args.snapshot, own, os.environ) if rank == 0 else None]

    device = connect(local_rank)
    sign = f"[{'GPU' if device.type == 'cuda' else 'CPU'}{rank}]"
    # What rank 0 read counts for all: where each replica has a folder of its own, their snapshots may differ.
    dist.broadcast_object_list(chosen, src=0)
    start = chosen[0] or {"epoch": 0, "started_from": 0, "world_size": world_size, "random": None}
    last = start["started_from"] + args.total_epochs

    for seed in (random.seed, numpy.random.seed, torch.manual_seed):
        seed(args.seed + rank)
    model, optimizer = build(start, args.lr, device)
    train, test = digits()
    sampler = DistributedSampler(train, seed=args.seed)
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler)
    if start["random"] and start["world_size"] == world_size:
        restore_random(start["random"][rank])
    for epoch in range(start["epoch"] + 1, last + 1):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, optimizer, loader, device)
        say(f"{sign} epoch {epoch}/{last} | Batchsize: {args.batch_size} | Steps: {len(loader)} | loss {loss:.4f}")
        if epoch % args.save_every == 0 or epoch == last:
            now = {"epoch": epoch, "world_size": world_size, "random": random_of_every_rank(world_size)}
            if writer:
                weights = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
                save({**start, **now, **weights}, args.snapshot, os.environ)
            dist.barrier()  # nobody trains on before the snapshot is safe
    if rank == 0:
        say(f"test accuracy {accuracy(model.module, test, device):.4f}")
    dist.destroy_process_group()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a classifier of handwritten digits.")
    parser.add_argument("total_epochs", type=int, help="epochs to train; that many more where it continues another run")
    parser.add_argument("save_every", type=int, help="epochs from one snapshot to the next")
    parser.add_argument("--batch_size", type=int, default=32, help="of each rank (32)")
    parser.add_argument("--lr", type=float, help="learning rate (the snapshot's, or 0.001)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, order and dropout (0)")
    parser.add_argument("--snapshot", type=Path, default=Path("snapshot.pt"), help="the file (snapshot.pt)")
    args = parser.parse_args()
    if min(args.total_epochs, args.save_every, args.batch_size) < 1:
        parser.error("epochs and batch size must be above 0")
    if not args.snapshot.parent.is_dir():
        parser.error(f"--snapshot: there is no folder {args.snapshot.parent}; make it or mount it first")
    if "LOCAL_RANK" not in os.environ:
        parser.error("start it with torchrun: torchrun --standalone --nproc_per_node 2 multinode.py 100 25")
    return args


def connect(local_rank: int) -> torch.device:
    """Joins the other ranks: NCCL where there are GPUs, gloo where not."""
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    return torch.device("cuda", local_rank)


def say(text: str) -> None:
    """A line in a single write, or the lines of ranks that share a terminal get mixed."""
    print(f"{text}\n", end="", flush=True)


def digits() -> tuple[TensorDataset, TensorDataset]:
    """1437 images to train and 360 to test: always the same, or a continued run is tested on what it has learnt."""
    images, labels = (torch.tensor(part) for part in load_digits(return_X_y=True))
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    every = TensorDataset(images.float() / 16, labels)
    return TensorDataset(*every[order[360:]]), TensorDataset(*every[order[:360]])


def build(start: dict[str, Any], lr: float | None, device: torch.device) -> tuple[nn.Module, Optimizer]:
    """Model and optimizer, with the weights of `start` if it has any; `lr` wins over the snapshot's."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)).to(device)
    optimizer = Adam(model.parameters(), lr=0.001)
    if "model" in start:
        model.load_state_dict(start["model"])
        optimizer.load_state_dict(start["optimizer"])
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] if lr is None else lr
    return nn.parallel.DistributedDataParallel(model), optimizer


def train_epoch(model: nn.Module, optimizer: Optimizer, loader: DataLoader, device: torch.device) -> float:
    """The mean loss of this rank."""
    model.train()
    total = torch.zeros((), device=device)
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return float(total) / len(loader)


def accuracy(model: nn.Module, test: TensorDataset, device: torch.device) -> float:
    model.eval()
    images, labels = (tensor.to(device) for tensor in test.tensors)
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())


def saves(path: Path, rank: int, local_rank: int, env: Mapping[str, str]) -> bool:
    """A file on a claim, which all replicas see, has one writer; one in the working folder has one in each replica."""
    claims = [Path(folder) for name, folder in env.items() if name.startswith("TORCHYARD_VOLUME_") and folder]
    shared = any(path.resolve().is_relative_to(claim.resolve()) for claim in claims)
    return (rank if shared else local_rank) == 0


def settle(path: Path, env: Mapping[str, str]) -> dict[str, Any] | None:
    """The snapshot at `path` if this workload wrote it. Anything else there is kept under a second name."""
    temporary(path, env).unlink(missing_ok=True)  # of a save that was killed
    try:
        snapshot = load(path)
    except FileNotFoundError:
        return None
    except ValueError as problem:
        keep(path, "unreadable", str(problem))
        path.unlink(missing_ok=True)
        return None
    if snapshot["written_by"]["workload_id"] == env.get("TORCHYARD_WORKLOAD_ID"):
        return snapshot
    writer = snapshot["written_by"]["workload"] or "unnamed"
    keep(path, re.sub(r"[^A-Za-z0-9-]", "_", writer), f"is of workload {writer}")
    return None


def starting_point(path: Path, own: dict[str, Any] | None, env: Mapping[str, str]) -> dict[str, Any] | None:
    """Our own snapshot, else the one that we were asked to continue from, else None: from the beginning."""
    source = env.get("TORCHYARD_RESUME_FROM")
    if own:
        say(f"resuming from snapshot at epoch {own['epoch']} ({path})")
    if own or not source:
        return own
    try:
        other = load(Path(source))
    except (OSError, ValueError) as problem:
        raise SystemExit(f"cannot continue from {source}: {problem}") from problem
    say(f"continuing from {source} (epoch {other['epoch']} of workload {other['written_by']['workload'] or 'unnamed'})")
    return {**other, "started_from": other["epoch"], "random": None}


def load(path: Path) -> dict[str, Any]:
    """Raises ValueError with half a sentence when the file is no whole snapshot of this script."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip():  # torch.load alone checks no sums
                raise zipfile.BadZipFile
        snapshot: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (zipfile.BadZipFile, RuntimeError, pickle.UnpicklingError) as error:
        raise ValueError("is torn, or no snapshot at all") from error
    if not isinstance(snapshot, dict) or not {"started_from", "random", "written_by"} <= snapshot.keys():
        raise ValueError("is not a snapshot of this script")
    return snapshot


def save(snapshot: dict[str, Any], path: Path, env: Mapping[str, str]) -> None:
    """Leaves the old file or the new one, whole, whenever it is killed: write beside, make durable, rename."""
    written_by = {name: env.get(f"TORCHYARD_{name.upper()}") for name in ("workload_id", "workload", "attempt")}
    settle(path, env)  # another workload may have saved here since
    with temporary(path, env).open("wb") as file:
        torch.save({**snapshot, "written_by": written_by}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary(path, env).replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def temporary(path: Path, env: Mapping[str, str]) -> Path:
    """Beside the file, and the same for the same replica of every attempt: no other writer uses it."""
    return path.with_name(f".{path.name}.{env.get('TORCHYARD_WORKLOAD_ID', 'local')}.{env.get('GROUP_RANK', '0')}.tmp")


def keep(path: Path, label: str, why: str) -> None:
    """A second name for the file, or a copy where there are no hard links: the first name stays good for others."""
    for number in itertools.count(1):
        kept = path.with_name(f"{path.stem}-{label}{f'-{number}' if number > 1 else ''}{path.suffix}")
        new = not kept.exists()
        try:
            os.link(path, kept)
        except OSError:  # the name is taken, or there are no hard links here
            if not kept.exists():
                shutil.copy2(path, kept)
        if filecmp.cmp(path, kept, shallow=False):
            break
    if new:
        say(f"{path} {why}: kept as {kept}")


def random_of_every_rank(world_size: int) -> list[dict[str, Any]]:
    """The state of the random number generators, of which each rank has its own."""
    own = {
        "python": random.getstate(),
        "numpy": numpy.random.get_state(legacy=False),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }
    own["numpy"]["state"]["key"] = own["numpy"]["state"]["key"].tolist()  # weights_only loads no numpy arrays
    states: list[dict[str, Any]] = [{}] * world_size
    dist.all_gather_object(states, own)
    return states


def restore_random(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    numpy.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


if __name__ == "__main__":
    main()
