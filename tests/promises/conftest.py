"""One server for all tests of a module; those that break the server make one of their own."""

from collections.abc import Iterator

import pytest

from tests.promises.place import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    here = Place(tmp_path_factory.mktemp("place"))
    here.start()
    yield here
    here.end()


@pytest.fixture
def own_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    here = Place(tmp_path_factory.mktemp("own"))
    here.start()
    yield here
    here.end()
