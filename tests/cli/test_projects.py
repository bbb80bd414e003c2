"""Projects and departments from the command line, against a server with a fake engine behind it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard
from tests.server.serving import serving

from torchyard.app import build
from torchyard.client import connect, org
from torchyard.engines.fake import FakeEngine, FakeWorld
from torchyard.settings import Settings


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("served")
    settings = Settings(data=folder / "data", lock_dir=folder / "locks")
    with serving(build(settings, {"local": FakeEngine(FakeWorld(devices=8))})) as url:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHYARD_", "XDG_"))}
        token = settings.token_file.read_text().strip()
        yield Yard(env | {"HOME": str(folder), "TORCHYARD_URL": url, "TORCHYARD_TOKEN": token}, Path(folder))


def rows(yard: Yard, *words: str) -> list[list[str]]:
    return [line.replace("*", " ").split() for line in yard.run(*words).stdout.splitlines()[1:]]


def test_departments_and_projects_are_made_listed_changed_and_deleted(yard: Yard) -> None:
    assert "research is made" in yard.run("department", "create", "research", "--quota", "8").stdout
    yard.run("project", "create", "vision", "--department=research", "--quota", "6", "--description", "pictures")
    assert [row[:4] for row in rows(yard, "project", "list")] == [
        ["default", "-", "0", "default"],
        ["vision", "6", "0", "research"],
    ]
    assert [row[:4] for row in rows(yard, "department", "list")] == [
        ["default", "-", "0", "1"],
        ["research", "8", "0", "1"],
    ]
    assert "pictures" in yard.run("project", "list", "-o", "wide").stdout
    assert "quota of 4" in yard.run("project", "update", "vision", "--quota", "4").stdout
    assert "quota of none" in yard.run("department", "update", "research", "--quota", "none").stdout
    assert [row[1] for row in rows(yard, "project", "list")] == ["-", "4"]
    assert yard.run("project", "set", "vision").stdout == "project vision is in use\n"
    refused = yard.run("department", "delete", "research", code=2).stderr
    assert "has projects: vision" in refused and "delete these first" in refused
    assert "project vision is deleted" in yard.run("project", "delete", "vision").stdout
    assert "department research is deleted" in yard.run("department", "delete", "research").stdout
    for unit in ("project", "department"):
        assert yard.run(unit, "list", "-o", "name").stdout == "default\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("project", "create", "default"), "already"),
        (("project", "create", "Vision"), "name"),
        (("project", "create", "vision", "--quota", "lots"), "neither a number of devices"),
        (("project", "create", "vision", "--quota", "-1"), "neither a number of devices"),
        (("project", "create", "vision", "--department", "nowhere"), "there are: default"),
        (("project", "update", "vision"), "--quota"),
        (("project", "update", "nowhere", "--quota", "1"), "there are: default"),
        (("project", "delete", "nowhere"), "there are: default"),
        (("project", "delete", "default"), "stays"),
        (("project", "crate", "vision"), "did you mean create"),
        (("department", "create", "default"), "already"),
        (("department", "delete", "default"), "stays"),
    ],
)
def test_what_cannot_be_is_said_with_a_way_out(yard: Yard, words: tuple[str, ...], said: str) -> None:
    ran = yard.run(*words, code=None)
    assert ran.returncode == 2 and said in ran.stderr and len(ran.stderr.splitlines()) <= 2, ran.stderr


def test_more_projects_than_fit_a_page_are_all_found(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(org, "PAGE", 2)
    with connect(yard.env) as server:
        for name in ("a", "b", "c"):
            org.create(server, "project", {"name": name})
        assert [project["name"] for project in org.projects(server)] == ["a", "b", "c", "default"]
        for name in ("a", "b", "c"):
            org.delete(server, "project", org.project_id(server, name))
