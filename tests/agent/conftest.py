"""What the tests of the agent share."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.agent.replicas import AGENT, COUNT, Replica


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    shutil.copytree(AGENT, tmp_path / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.fixture
def replica(attempt: Path) -> Iterator[Replica]:
    made = Replica(attempt)
    yield made
    made.end()


@pytest.fixture
def script(attempt: Path) -> Callable[[str], list[str]]:
    """Python source as a command line."""

    def write(source: str) -> list[str]:
        path = attempt / f"script{next(COUNT)}.py"
        path.write_text(source)
        return [sys.executable, "-S", str(path)]

    return write


@pytest.fixture
def torchrun(attempt: Path) -> str:
    """A launcher that does to its ranks what the real one does."""
    path = attempt / "torchrun"
    path.write_text(f"#!{sys.executable} -S\n{(Path(__file__).parent / 'fake_torchrun.py').read_text()}")
    path.chmod(0o755)
    return str(path)
