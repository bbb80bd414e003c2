"""The tables of docs/howto/runai-scripts.md tell the truth about which routes there are."""

import re
from pathlib import Path

import pytest
from tests.server.test_routes import routes

TEXT = (Path(__file__).parents[2] / "docs/howto/runai-scripts.md").read_text()
THERE, MISSING = (
    set(re.findall(r"`(?:[A-Z]+ )?(/api/[^`]+)`", part)) for part in TEXT.split("## What is not there yet")
)


@pytest.fixture
def known(tmp_path: Path) -> set[str]:
    return {path for _, path in routes(tmp_path)}


def test_what_is_said_to_be_there_is_there(known: set[str]) -> None:
    assert len(THERE) > 30 and known >= THERE


def test_what_is_said_to_be_missing_is_missing(known: set[str]) -> None:
    assert len(MISSING) > 10 and not MISSING & known
