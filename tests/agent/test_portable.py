"""The agent is copied to where only an old Python is: standard library, Python 3.9 syntax, relative imports."""

import ast
import sys
from pathlib import Path

import pytest
from tests.agent.replicas import AGENT

FILES = sorted(AGENT.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_needs_nothing(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    lazy = False
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match)
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or (node.level == 0 and str(node.module).split(".")[0] in sys.stdlib_module_names)
            lazy = lazy or node.module == "__future__"
        if isinstance(node, ast.Call):
            assert all(keyword.arg not in ("strict", "slots") for keyword in node.keywords)
    assert lazy or len(tree.body) == 1
