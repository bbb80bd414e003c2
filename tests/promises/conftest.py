"""One server for all tests that leave it whole, one for each module whose tests kill it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.place import Place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    here = Place(tmp_path_factory.mktemp("place"))
    here.start()
    yield here
    here.end()


@pytest.fixture(scope="module")
def own_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    here = Place(tmp_path_factory.mktemp("own"))
    here.start()
    yield here
    here.end()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """32 MB that can be filled."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
