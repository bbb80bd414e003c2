"""The real app on a real socket: control, store and the fake engine behind it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.server.serving import serving
from torchyard.engines.fake import FakeEngine

from torchyard.app import build
from torchyard.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data", lock_folder=tmp_path / "locks", heartbeat=0.2)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def url(settings: Settings, engine: FakeEngine) -> Iterator[str]:
    with serving(build(settings, {"local": engine})) as address:
        yield address


@pytest.fixture
def token(settings: Settings, url: str) -> str:
    return settings.token_file.read_text().strip()


@pytest.fixture
def http(url: str, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=20) as client:
        yield client
