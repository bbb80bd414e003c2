"""What the tests of engines share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engines.places import FakePlace, LocalPlace, Place


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[LocalPlace]:
    """This machine."""
    made = LocalPlace(tmp_path)
    yield made
    await made.clear()


@pytest.fixture(params=["fake", "local"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Every engine in turn."""
    made: Place = FakePlace() if request.param == "fake" else LocalPlace(tmp_path)
    yield made
    await made.clear()
