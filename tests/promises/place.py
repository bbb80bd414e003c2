"""A server of its own in a process of its own: started, killed and asked as a user does it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from torchyard.client import logs, workloads
from torchyard.client.http import Address, Server
from torchyard.client.logs import Line, LogChoice
from torchyard.domain.errors import TorchyardError, Unavailable

BIN = Path(sys.executable).parent
TORCHRUN = Path(__file__).parent.parent / "agent" / "fake_torchrun.py"
SECONDS = 60.0
"""A patience that no test needs on an idle machine."""
OVER = ("Completed", "Failed", "Stopped")
T = TypeVar("T")


def until(ask: Callable[[], T], seconds: float = SECONDS) -> T:
    """The first true answer."""
    end = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
    return answer


class Place:
    """A data folder, a working folder and the server that works on them. `program`: how Python starts it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.work, bin_ = folder / "work", folder / "bin"
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
            "TORCHYARD_DATA": str(folder / "data"),
            "TORCHYARD_LOCK_DIR": str(folder / "locks"),
            "TORCHYARD_CPU_SLOTS": "4",
            **settings,
        }
        self.data = Path(self.env["TORCHYARD_DATA"])
        self.program = ["-m", "torchyard.cli.main", "server", "run"]
        self.server: subprocess.Popen[bytes] | None = None
        self._connection: Server | None = None

    # The server

    def launch(self) -> None:
        """Start a server; it is not up yet."""
        (self.data / "server.json").unlink(missing_ok=True)
        argv = [sys.executable, *self.program]
        with self._said.open("ab") as log:
            self.server = subprocess.Popen(argv, env=self.env, cwd=self.work, stdout=log, stderr=log)

    def start(self) -> None:
        """Start a server and wait until it answers."""
        self.launch()
        self.wait_up()

    def wait_up(self) -> None:
        """The server answers from now on."""
        server = self.server
        assert server is not None
        until(lambda: (self.data / "server.json").exists() or server.poll() is not None)
        assert server.poll() is None, self._said.read_text()[-2000:]

    @property
    def _said(self) -> Path:
        return self.work.parent / "server.log"

    def kill(self) -> None:
        """kill -9."""
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def end(self) -> None:
        """Stop what runs, then the server; leave no process behind."""
        ids: list[str] = []
        with contextlib.suppress(TorchyardError):
            for row in self.rows():
                ids.append(row["id"])
                if row["phase"] not in OVER:
                    workloads.stop(self.api, row, 0)
        assert self.server is not None
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()
        for identity in ids:
            for pid in marked(identity, exactly=False):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self._connection is not None:
            self._connection.close()
        shutil.rmtree(self.data, ignore_errors=True)

    # The command line

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
            timeout=400,
            check=False,
        )
        assert code is None or ran.returncode == code, f"{words}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran

    def explain(self, name: str) -> dict[str, Any]:
        """As a user sees it with `-o json`."""
        answer: dict[str, Any] = json.loads(self.torchyard("explain", name, "-o", "json").stdout)
        return answer

    # The API

    @property
    def api(self) -> Server:
        """A client of it, which finds the next server when this one was killed."""
        if self._connection is None:
            self._connection = Server(self.address)
        return self._connection

    def address(self) -> Address:
        """Where it listens now. Never starts one."""
        try:
            url = json.loads((self.data / "server.json").read_text())["url"]
            return Address(url, (self.data / "token").read_text().strip())
        except (OSError, ValueError) as problem:
            raise Unavailable("no server is up") from problem

    def script(self, name: str, text: str) -> str:
        """A file in the working folder."""
        (self.work / name).write_text(text)
        return name

    def submit(self, name: str, command: str, *, workers: int = 0, backoff: int = 0, **more: Any) -> str:
        """Submit what runs in the working folder; the workload's name."""
        spec = {"command": command, "workingDir": str(self.work), "backoffLimit": backoff, **more.pop("spec", {})}
        kind = "distributed" if workers else "training"
        if workers:
            spec["numWorkers"] = workers
        workloads.submit(self.api, kind, {"name": name, "spec": spec, "torchyard": {"isolation": "process", **more}})
        return name

    def rows(self) -> list[dict[str, Any]]:
        """All workloads."""
        return workloads.page(self.api, limit=500)[0]

    def row(self, name: str) -> dict[str, Any]:
        """What the list says of it."""
        return workloads.find(self.api, name, "default")

    def describe(self, name: str) -> dict[str, Any]:
        """Everything about a workload."""
        row = self.row(name)
        attempts = workloads.attempts(self.api, row["id"])
        return {**row, "attempts": attempts, "events": workloads.happenings(self.api, row["id"], 500)}

    def reach(self, name: str, phase: str) -> dict[str, Any]:
        """Wait for a phase; the description then."""

        def look() -> bool:
            now = self.row(name)
            assert now["phase"] == phase or now["phase"] not in OVER, now
            return bool(now["phase"] == phase)

        until(look)
        return self.describe(name)

    def attempts(self, name: str) -> list[dict[str, Any]]:
        return workloads.attempts(self.api, self.row(name)["id"])

    def attempt(self, name: str, number: int) -> dict[str, Any]:
        """One attempt, once there is one of that number."""
        found = until(lambda: found if len(found := self.attempts(name)) >= number else [])
        return found[number - 1]

    def cause(self, name: str, number: int = 1) -> str:
        """Why an attempt ended, once it has."""
        return str(until(lambda: self.attempt(name, number)["cause"]))

    def ranks(self, name: str, count: int = 1) -> list[dict[str, Any]]:
        """The ranks of the attempt of now, once there are so many."""

        def look() -> list[dict[str, Any]]:
            replicas = [replica for attempt in self.attempts(name)[-1:] for replica in attempt["replicas"]]
            found = [rank for replica in replicas for rank in replica["ranks"]]
            return found if len(found) >= count else []

        return until(look)

    def lines(self, name: str, **choice: Any) -> list[Line]:
        """Its log as the API serves it."""
        found = logs.read(self.api, self.row(name)["id"], LogChoice(**choice), patience=SECONDS)
        return [logs.line_of(event) for event in found if event.name == "line"]

    def said(self, name: str, **choice: Any) -> list[str]:
        """The texts of its log."""
        return [line.text for line in self.lines(name, **choice)]

    def stop(self, name: str, grace: float | None = None) -> None:
        workloads.stop(self.api, self.row(name), grace)

    def attempt_folder(self, name: str, number: int = 1) -> Path:
        workload = str(self.row(name)["id"])
        return self.data / "projects" / "default" / "workloads" / workload / "attempts" / str(number)

    def key(self, name: str, number: int = 1) -> str:
        """What marks the processes of an attempt."""
        return f"{self.row(name)['id']}-{number}"


def marked(key: str, exactly: bool = True) -> list[int]:
    """Processes that carry an attempt's mark; not `exactly`: of any attempt of that workload."""
    mark = f"TORCHYARD_ATTEMPT={key}{'' if exactly else '-'}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in words if exactly else any(word.startswith(mark) for word in words):
            found.append(int(path.parent.name))
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def supervisor(folder: Path) -> int:
    """The pid of the supervisor of a replica's folder."""
    return int(json.loads((folder / "started").read_text())["pid"])
