"""Command lines as processes against a server of the tests' own, in pipes or on a terminal."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 60.0
TORCHYARD = [sys.executable, "-m", "torchyard.cli.main"]


@dataclass
class Yard:
    """A server of our own and the folder that commands run in."""

    env: dict[str, str]
    folder: Path
    numbers: list[int] = field(default_factory=list)

    def run(self, *words: str, code: int | None = 0, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end; `code` is the exit code that it must have."""
        ran = subprocess.run(
            [*TORCHYARD, *words],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=self.env,
            cwd=self.folder,
            input=stdin,
        )
        assert code is None or ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran

    @contextmanager
    def start(self, *words: str) -> "Iterator[subprocess.Popen[str]]":
        """A command line that runs; it is killed at the end if it still does."""
        process = subprocess.Popen(
            [*TORCHYARD, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=self.folder,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=SECONDS)

    def name(self) -> str:
        """A name that no other test has."""
        self.numbers.append(0)
        return f"w{len(self.numbers)}"

    def row(self, name: str) -> dict[str, object]:
        """What `describe` knows."""
        found: dict[str, object] = json.loads(self.run("describe", name, "--json").stdout)
        return found

    def wait_for(self, name: str, phase: str) -> None:
        """Until a workload is in this phase."""
        assert wait_until(lambda: self.row(name)["phase"] == phase, SECONDS), self.row(name)


def in_terminal(
    yard: Yard,
    words: Sequence[str],
    typed: str = "",
    react: Callable[[int, str], None] = lambda pid, seen: None,
    prompt: str = "",
) -> tuple[str, int]:
    """What a command line shows on a terminal of 24 x 80, and its exit code.

    `typed` is typed once `prompt` is there; `react` is called as output comes.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(yard.folder)
        os.execve(sys.executable, [*TORCHYARD, *words], yard.env | {"TERM": "xterm", "LINES": "24", "COLUMNS": "80"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen, left = b"", typed.encode()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if left and prompt.encode() in seen:
            os.write(terminal, left)
            left = b""
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        try:
            piece = os.read(terminal, 65536) if ready else b""
        except OSError:
            piece = b""
        if not piece:
            break
        seen += piece
        react(pid, seen.decode(errors="replace"))
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return seen.decode(errors="replace"), os.waitstatus_to_exitcode(status)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Look until it is so; False when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
