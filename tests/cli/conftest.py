"""Runs command lines as users do, in this process or in one of their own; settings and data in a temporary folder."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.yard import SECONDS, TORCHYARD, Yard

from torchyard.cli.main import main


@dataclass(frozen=True)
class Ran:
    """A command line that has ended."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, no server configured, and no colours."""
    for name in [name for name in os.environ if name.startswith(("TORCHYARD_", "XDG_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TORCHYARD_DATA", str(folder / "data"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], home: Path) -> Callable[..., Ran]:
    """Run a command line in this process."""

    def run(*words: str) -> Ran:
        code = main(words)
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def untouched(home: Path) -> Iterator[None]:
    """Whatever the test does, no server is started and nothing is created."""
    yield
    assert not (home / "data").exists()


@pytest.fixture(scope="session")
def owner_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a server's owner; the server runs until the end."""
    home = tmp_path_factory.mktemp("owner")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TORCHYARD_", "XDG_"))},
        "HOME": str(home),
        "TORCHYARD_DATA": str(home / "data"),
        "TORCHYARD_LOCK_DIR": str(home / "locks"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    subprocess.run([*TORCHYARD, "server", "start"], env=env, check=True, timeout=SECONDS, capture_output=True)
    yield env
    subprocess.run([*TORCHYARD, "server", "stop"], env=env, check=True, timeout=SECONDS, capture_output=True)


@pytest.fixture
def guest(owner_env: dict[str, str], tmp_path: Path) -> Yard:
    """The command line of somebody else, who knows nothing yet."""
    home = tmp_path / "guest"
    home.mkdir()
    return Yard(owner_env | {"HOME": str(home), "TORCHYARD_DATA": str(home / "data")}, home)


def python(words: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run Python with these words."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a server that is started by the first command and stopped at the end."""
    home = tmp_path_factory.mktemp("yard")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TORCHYARD_", "XDG_"))},
        "HOME": str(home),
        "TORCHYARD_DATA": str(home / "data"),
        "TORCHYARD_LOCK_DIR": str(home / "locks"),
        "TORCHYARD_CPU_SLOTS": "4",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    yield env
    subprocess.run([*TORCHYARD, "server", "stop"], env=env, check=True, timeout=SECONDS, capture_output=True)


@pytest.fixture
def yard(server: dict[str, str], tmp_path: Path) -> Yard:
    """The server, and an empty folder to run things in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return Yard(server, folder, _NUMBERS)


_NUMBERS: list[int] = []
