"""The real app on a real socket: control, store and the fake engine behind it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.server.serving import serving

from torchyard.app import build
from torchyard.engines.fake import FakeEngine, FakeWorld
from torchyard.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data", lock_dir=tmp_path / "locks", heartbeat=0.2)


@pytest.fixture
def world() -> FakeWorld:
    return FakeWorld(devices=8)


@pytest.fixture
def url(settings: Settings, world: FakeWorld) -> Iterator[str]:
    with serving(build(settings, {"local": FakeEngine(world)})) as address:
        yield address


@pytest.fixture
def token(settings: Settings, url: str) -> str:
    return settings.token_file.read_text().strip()


@pytest.fixture
def http(url: str, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=20) as client:
        yield client


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One server for all tests of a file that leave nothing behind."""
    folder = tmp_path_factory.mktemp("quiet")
    settings = Settings(data=folder / "data", lock_dir=folder / "locks")
    with serving(build(settings, {"local": FakeEngine(FakeWorld())})) as address:
        headers = {"Authorization": f"Bearer {settings.token_file.read_text().strip()}"}
        with httpx.Client(base_url=f"{address}/api/v1", headers=headers, timeout=20) as client:
            yield client
