"""A file in a folder is found, so is what another package brings by an entry point."""

import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest

from torchyard.discover import load, modules


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with a folder `things`, and a distribution that brings one more thing."""
    garden = f"garden_of_{tmp_path.name}"
    things = tmp_path / garden / "things"
    things.mkdir(parents=True)
    for file in (things.parent / "__init__.py", things / "__init__.py"):
        file.write_text("")
    for name in ("beta", "alpha", "_private"):
        (things / f"{name}.py").write_text(f"NAME = {name!r}\n")
    (things / "broken.txt").write_text("not a module")
    (tmp_path / "brought_for_test.py").write_text("NAME = 'brought'\n")
    info = tmp_path / "brought_for_test-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-for-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torchyard.things]\nbrought = brought_for_test\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()
    return f"{garden}.things"


def test_own_modules_then_brought_ones(installed: str) -> None:
    assert modules(installed) == (f"{installed}.alpha", f"{installed}.beta", "brought_for_test")


def test_nothing_is_imported_before_it_is_used(installed: str) -> None:
    modules(installed)
    assert f"{installed}.alpha" not in sys.modules
    names: list[str] = [module.NAME for module in load(installed)]
    assert names == ["alpha", "beta", "brought"]
