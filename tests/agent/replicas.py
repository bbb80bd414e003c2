"""A replica folder as the local engine makes it, and a torchrun made of the standard library."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

AGENT = Path(__file__).parents[2] / "src" / "torchyard" / "agent"
PYTHON = [sys.executable, "-I", "-S"]
COUNT = itertools.count()
T = TypeVar("T")


class Line(NamedTuple):
    at: int
    rank: str
    kind: str
    text: str


class Replica:
    """One replica folder. Everything started in it carries a mark in its environment, by which it is found again."""

    def __init__(self, attempt: Path, name: str = "worker-0") -> None:
        self.attempt = attempt
        self.path = attempt / name
        self.path.mkdir()
        self.mark = f"agent-test-{os.getpid()}-{next(COUNT)}"
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.others: list[subprocess.Popen[bytes]] = []

    def prepare(self, argv: list[str], env: dict[str, str] | None = None, **fields: Any) -> None:
        keeper = [*PYTHON, "-c", self.code("keeper", self.path / "run")]
        document = {
            "format": 1,
            "attempt": self.mark,
            "replica": self.path.name,
            "node_rank": 0,
            "nproc": 2,
            "keeper_argv": keeper,
            "run_inside": str(self.path / "run"),
            "cleanup_argv": None,
            "argv": argv,
            "cwd": str(self.attempt),
            "env": {
                "PATH": os.environ["PATH"],
                "TORCHYARD_ATTEMPT": self.mark,
                "PYTHONUNBUFFERED": "1",
                "PET_LOG_DIR": str(self.path / "ranks"),
                "PET_NPROC_PER_NODE": "2",
                "PET_RDZV_ID": "ddp-1",
                **(env or {}),
            },
            "rank_logs": str(self.path / "ranks"),
            "grace": 30.0,
            **fields,
        }
        (self.path / "run").mkdir(exist_ok=True)
        (self.path / "replica.json").write_text(json.dumps(document))

    def code(self, module: str, argument: Path) -> str:
        attempt = str(self.attempt)
        return f"import sys; sys.path.insert(0, {attempt!r}); from agent.{module} import main; main({str(argument)!r})"

    def start(self, secrets: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
        argv = [*PYTHON, "-c", self.code("supervisor", self.path)]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True, **options)
        assert process.stdin is not None
        process.stdin.write(json.dumps({"env": secrets or {}}).encode())
        process.stdin.close()
        self.others.append(process)
        self.supervisor = self.supervisor or process
        return process

    def run(self, argv: list[str], env: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        self.prepare(argv, env, **fields)
        self.start()
        return self.wait()

    def wait(self, timeout: float = 30) -> dict[str, Any]:
        assert self.supervisor is not None
        assert self.supervisor.wait(timeout) == 0
        record = self.exit_record()
        assert record is not None
        return record

    def stop(self, grace: float) -> None:
        assert self.supervisor is not None
        temporary = self.path / "stop.new"
        temporary.write_text(json.dumps({"grace": grace, "reason": "test"}))
        temporary.rename(self.path / "stop")
        self.supervisor.send_signal(signal.SIGTERM)

    def exit_record(self) -> dict[str, Any] | None:
        line = (self.path / "exit").read_bytes().split(b"\n")[0]
        if not line.strip():
            return None
        checksum, _, body = line.partition(b" ")
        assert int(checksum, 16) == zlib.crc32(body)
        document: dict[str, Any] = json.loads(body)
        return document

    def status(self) -> dict[str, Any]:
        try:
            document: dict[str, Any] = json.loads((self.path / "status").read_text())
        except FileNotFoundError:
            return {"state": None, "ranks": [], "command_pid": None}
        return document

    def log(self) -> list[Line]:
        try:
            data = (self.path / "log").read_bytes()
        except FileNotFoundError:
            return []
        lines = []
        for record in data.split(b"\n")[:-1]:
            at, rank, kind, text = record.split(b" ", 3)
            assert len(at) == 16
            lines.append(Line(int(at), rank.decode(), kind.decode(), text.decode()))
        return lines

    def said(self, rank: str = "-", kind: str = "o") -> list[str]:
        """Whole lines: what was shown while it was still unfinished is joined."""
        lines, begun = [], ""
        for line in self.log():
            if line.rank == rank and line.kind[0] == kind[0]:
                begun += line.text
                if not line.kind.endswith("c"):
                    lines += [begun] if line.kind == kind else []
                    begun = ""
        return lines

    def command_pid(self) -> int:
        return int(eventually(lambda: self.status()["command_pid"]))

    def keeper_pid(self) -> int:
        assert self.supervisor is not None
        return next(pid for pid in children(self.supervisor.pid) if b"agent.keeper" in cmdline(pid))

    def alive(self) -> list[int]:
        """Every process that came of the command, wherever it hangs in the process tree."""
        mark = f"TORCHYARD_ATTEMPT={self.mark}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def end(self) -> None:
        """Leave nothing behind, whatever the agent did."""
        for process in self.others:
            process.kill()
            process.wait()
        eventually(self._kill_all)

    def _kill_all(self) -> bool:
        left = self.alive()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def eventually(look: Callable[[], T], timeout: float = 15) -> T:
    """What `look` gives, once that is something."""
    until = time.monotonic() + timeout
    while not (value := look()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
    return value


def ask_keeper(
    replica: Replica, request: dict[str, Any], fds: list[int]
) -> tuple[socket.socket, Iterator[dict[str, Any]]]:
    """Send a request to keeper.sock; the connection and the replies come back."""
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(replica.path / "run", os.O_RDONLY)
    connection.connect(f"/proc/self/fd/{folder}/keeper.sock")
    os.close(folder)
    socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], fds)
    connection.settimeout(15)
    return connection, _replies(connection)


def _replies(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """A file made of the socket would keep it open."""
    data = b""
    while chunk := connection.recv(4096):
        *lines, data = (data + chunk).split(b"\n")
        yield from map(json.loads, lines)
