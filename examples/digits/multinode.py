"""Trains a small network on scikit-learn's handwritten digits with DistributedDataParallel, and survives being killed.

    torchrun multinode.py --batch_size 32 100 25        # 100 epochs, a snapshot every 25

The snapshot holds model, optimizer, random number generators, epoch and who wrote it. A snapshot on a shared claim is written
by global rank 0; one in the working folder by local rank 0 of each replica, since every replica has a folder of its own.
"""

import argparse
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse() -> argparse.Namespace:
    """The tutorial's arguments, and a few more."""
    parser = argparse.ArgumentParser(description="distributed training on handwritten digits")
    parser.add_argument("total_epochs", type=int, help="how many epochs to train")
    parser.add_argument("save_every", type=int, help="epochs between two snapshots")
    parser.add_argument("--batch_size", type=int, default=32, help="samples per rank and step (default 32)")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate (default 0.001)")
    parser.add_argument("--snapshot", type=Path, default=Path("snapshot.pt"), help="where the snapshot lies")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def on_shared_claim(path: Path) -> bool:
    """Does every replica see the same file there? True for folders that torchyard mounted (TORCHYARD_VOLUME_*)."""
    volumes = [Path(value) for name, value in os.environ.items() if name.startswith("TORCHYARD_VOLUME_")]
    return any(path.resolve().is_relative_to(volume.resolve()) for volume in volumes)


def author() -> dict[str, str | None]:
    """Who writes: this workload, or nobody in particular outside of torchyard."""
    return {"id": os.environ.get("TORCHYARD_WORKLOAD_ID"), "name": os.environ.get("TORCHYARD_WORKLOAD")}


def load(path: Path) -> dict[str, Any] | None:
    """A snapshot, or None when there is none that can be read; a torn one is put aside."""
    if not path.exists():
        return None
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except (RuntimeError, EOFError, ValueError) as problem:
        print(f"cannot read {path} ({str(problem).splitlines()[0][:80]}); it is left as it is", flush=True)
        return None


def find_snapshot(path: Path) -> tuple[dict[str, Any] | None, bool]:
    """(snapshot, is it ours): ours if this workload wrote one, else the one that TORCHYARD_RESUME_FROM names."""
    own = load(path)
    if own is not None and own["written_by"]["id"] == author()["id"]:
        return own, True
    other = os.environ.get("TORCHYARD_RESUME_FROM")
    return (load(Path(other)) if other else None), False


def save(path: Path, snapshot: dict[str, Any]) -> None:
    """Write atomically: a kill at any moment leaves the old snapshot or the new one, never half of one."""
    keep_foreign(path)
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def keep_foreign(path: Path) -> None:
    """A snapshot of another workload, or one that cannot be read, gets a second name before ours takes its place."""
    if not path.exists():
        return
    found = load(path)
    if found is not None and found["written_by"]["id"] == author()["id"]:
        return
    name = (found["written_by"]["name"] or "other") if found is not None else "torn"
    kept = path.with_name(f"{path.stem}-{name}{path.suffix}")
    kept.unlink(missing_ok=True)
    try:
        os.link(path, kept)
    except OSError:
        shutil.copy2(path, kept)
    print(f"kept {path} of {name} as {kept.name}", flush=True)


def random_state() -> dict[str, Any]:
    """Where the random number generators stand, in types that weights_only can load."""
    version, numbers, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
        "python": [version, list(numbers), gauss],
        "numpy": [kind, [int(key) for key in keys], int(position), int(has_gauss), float(cached)],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Put the generators back."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    kind, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))


def digits(batch_size: int) -> tuple[DataLoader[Any], DistributedSampler[Any], torch.Tensor, torch.Tensor]:
    """This rank's share of the training digits, and all test digits."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16.0, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.as_tensor(part) for part in split)
    train = TensorDataset(train_x.float(), train_y.long())
    sampler: DistributedSampler[Any] = DistributedSampler(train, shuffle=True)
    return DataLoader(train, batch_size=batch_size, sampler=sampler), sampler, test_x.float(), test_y.long()


class Trainer:
    """One rank's part of the training."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank, self.local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
        self.device = torch.device("cuda", self.local_rank) if torch.cuda.is_available() else torch.device("cpu")
        self.loader, self.sampler, self.test_x, self.test_y = digits(options.batch_size)
        net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10)).to(self.device)
        self.model = DistributedDataParallel(net, device_ids=[self.local_rank] if torch.cuda.is_available() else None)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.lr)
        self.first, self.last = 0, options.total_epochs
        self.resume()

    def resume(self) -> None:
        """Go on where this workload was, or further from where another one ended."""
        snapshot, ours = find_snapshot(self.options.snapshot)
        if snapshot is None:
            return
        self.model.module.load_state_dict(snapshot["model"])
        self.optimizer.load_state_dict(snapshot["optimizer"])
        self.first = int(snapshot["epoch"])
        if ours:
            self.last = int(snapshot["last_epoch"])
            set_random_state(snapshot["random"][min(self.rank, len(snapshot["random"]) - 1)])
            print(f"[rank {self.rank}] resuming from snapshot at epoch {self.first}", flush=True)
            return
        self.last = self.first + self.options.total_epochs
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.lr
        name = snapshot["written_by"]["name"]
        print(f"[rank {self.rank}] continuing from epoch {self.first} of {name}, lr {self.options.lr}", flush=True)

    def train(self) -> None:
        """All epochs that are left."""
        for epoch in range(self.first + 1, self.last + 1):
            loss = self.run_epoch(epoch)
            print(f"[rank {self.rank}] epoch {epoch}/{self.last} | steps {len(self.loader)} | loss {loss:.4f}", flush=True)
            if epoch % self.options.save_every == 0 or epoch == self.last:
                self.save(epoch)

    def run_epoch(self, epoch: int) -> float:
        """One pass over this rank's share; the mean loss."""
        self.sampler.set_epoch(epoch)
        self.model.train()
        total = 0.0
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)

    def save(self, epoch: int) -> None:
        """A snapshot by the rank whose business it is; nobody runs ahead of it."""
        states: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(states, random_state())
        shared = on_shared_claim(self.options.snapshot)
        if self.rank == 0 if shared else self.local_rank == 0:
            save(
                self.options.snapshot,
                {
                    "model": self.model.module.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                    "random": states,
                    "epoch": epoch,
                    "last_epoch": self.last,
                    "world_size": dist.get_world_size(),
                    "written_by": author(),
                },
            )
            print(f"[rank {self.rank}] saved {self.options.snapshot} at epoch {epoch}", flush=True)
        dist.barrier()

    def test(self) -> None:
        """How many of the test digits are read right."""
        self.model.eval()
        with torch.no_grad():
            guess = self.model.module(self.test_x.to(self.device)).argmax(dim=1).cpu()
        if self.rank == 0:
            print(f"test accuracy {(guess == self.test_y).float().mean().item():.4f}", flush=True)


def main() -> None:
    """One rank, started by torchrun."""
    options = parse()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(options.seed + dist.get_rank())
    trainer = Trainer(options)
    trainer.train()
    trainer.test()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
