"""A server of its own in a process of its own, started, killed and asked like a user does."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
TORCHRUN = Path(__file__).parent.parent / "agent" / "fake_torchrun.py"
SECONDS = 60.0
"""A patience that no test needs on an idle machine."""


def until(ask: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The first true answer."""
    end = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
    return answer


class Place:
    """A data folder, a working folder and the server that works on them."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.data, self.work, bin_ = folder / "data", folder / "work", folder / "bin"
        self.work.mkdir(parents=True)
        bin_.mkdir()
        launcher = bin_ / "torchrun"
        # As with the real one, what it is given is a script.
        text = TORCHRUN.read_text().replace("sys.argv[1:]", "[sys.executable, *sys.argv[1:]]")
        launcher.write_text(f"#!{sys.executable} -IS\n{text}")
        launcher.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHYARD_", "XDG_"))}
        self.env = {
            **kept,
            "HOME": str(folder),
            "PATH": f"{bin_}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}",
            "TORCHYARD_DATA": str(self.data),
            "TORCHYARD_LOCK_DIR": str(folder / "locks"),
            **settings,
        }
        self.server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start a server and wait until it answers."""
        (self.data / "server.json").unlink(missing_ok=True)
        argv = [sys.executable, "-m", "torchyard.cli.main", "server", "run"]
        quiet = subprocess.DEVNULL
        self.server = subprocess.Popen(argv, env=self.env, cwd=self.work, stdout=quiet, stderr=quiet)
        until((self.data / "server.json").exists)

    def kill(self) -> None:
        """kill -9."""
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def end(self) -> None:
        """Stop what runs, then the server; leave no process behind."""
        for name in self.torchyard("list", "-A", "-o", "name").stdout.split():
            self.torchyard("stop", name, code=None)
        assert self.server is not None
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                mine = f"TORCHYARD_DATA={self.data}".encode() in path.read_bytes()
            except OSError:
                continue
            if mine and path.parent.name != str(os.getpid()):
                os.kill(int(path.parent.name), signal.SIGKILL)
        shutil.rmtree(self.data, ignore_errors=True)

    def torchyard(
        self, *words: str, code: int | None = 0, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line; `code` is what it must end with, `before` stands before it."""
        ran = subprocess.run(
            [*before, str(BIN / "torchyard"), *words],
            env=self.env,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert code is None or ran.returncode == code, f"{words}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran

    def script(self, name: str, text: str) -> str:
        """A Python file in the working folder."""
        (self.work / name).write_text(text)
        return name

    def submit(self, name: str, command: str, *, workers: int = 0, backoff: int = 0, **more: Any) -> str:
        """Submit from a spec file, as `run -d` does, in this folder; the workload's name."""
        spec = {"command": command, "workingDir": str(self.work), "backoffLimit": backoff, **more.pop("spec", {})}
        kind = "distributed" if workers else "training"
        if workers:
            spec["numWorkers"] = workers
        document = {"kind": kind, "name": name, "spec": spec, "torchyard": {"isolation": "process", **more}}
        (self.work / f"{name}.json").write_text(json.dumps(document))
        self.torchyard("run", "-d", f"{name}.json")
        return name

    def describe(self, name: str) -> Any:
        """Everything about a workload."""
        return json.loads(self.torchyard("describe", name, "-o", "json").stdout)

    def phase(self, name: str) -> str:
        return str(self.describe(name)["phase"])

    def reach(self, name: str, phase: str) -> Any:
        """Wait for a phase; the description then."""
        return until(lambda: (d := self.describe(name))["phase"] == phase and d)

    def ranks(self, name: str) -> list[dict[str, Any]]:
        """The ranks of the attempt of now."""
        replicas = self.describe(name)["attempts"][-1]["replicas"]
        return [rank for replica in replicas for rank in replica["ranks"]]

    def attempt_folder(self, name: str, number: int = 1) -> Path:
        workload = self.describe(name)["id"]
        return self.data / "projects" / "default" / "workloads" / workload / "attempts" / str(number)

    def explain(self, name: str) -> Any:
        return json.loads(self.torchyard("explain", name, "-o", "json").stdout)

    def get(self, path: str) -> Any:
        """Ask the API."""
        url = json.loads((self.data / "server.json").read_text())["url"]
        token = (self.data / "token").read_text().strip()
        request = urllib.request.Request(f"{url}/api/v1{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)


def marked(key: str) -> list[int]:
    """Processes that carry an attempt's mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TORCHYARD_ATTEMPT={key}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
