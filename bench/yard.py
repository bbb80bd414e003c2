"""A server of its own for a measurement, in a folder that is removed afterwards."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TORCHYARD = str(Path(sys.executable).parent / "torchyard")


class Place:
    """A data folder and the environment that leads to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "TORCHYARD_DATA": str(folder / "data"), "OMP_NUM_THREADS": "1"}
        self.env["TORCHYARD_LOCK_DIR"] = str(folder / "locks")

    def torchyard(self, *arguments: str, may_fail: bool = False) -> str:
        """Run the CLI; its output."""
        done = subprocess.run(
            [TORCHYARD, *arguments], env=self.env, cwd=self.work, capture_output=True, text=True, check=False
        )
        if done.returncode and not may_fail:
            raise SystemExit(f"torchyard {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def describe(self, name: str) -> Any:
        """What `describe -o json` says."""
        return json.loads(self.torchyard("describe", name, "-o", "json"))


@contextmanager
def place() -> Iterator[Place]:
    """A fresh data folder with a running server."""
    folder = Path(tempfile.mkdtemp(prefix="torchyard-bench-"))
    here = Place(folder)
    try:
        here.torchyard("server", "start")
        yield here
        here.torchyard("server", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
