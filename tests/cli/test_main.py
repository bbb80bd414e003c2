"""The door: help and version cost nothing, names are guessed, errors are one sentence with the right exit code."""

import importlib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Ran, python

from torchyard import __version__
from torchyard.cli.main import SECTIONS, command_names, first_sentence, help_text, module_name

Cli = Callable[..., Ran]
pytestmark = pytest.mark.usefixtures("untouched")


def test_help_names_every_command(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    for name in command_names():
        assert f"\n  {name} " in ran.out
    assert cli().out == cli("-h").out == cli("help").out == ran.out == help_text()


def test_every_command_in_the_help_is_there() -> None:
    assert {name for _, names in SECTIONS for name in names} == set(command_names())


@pytest.mark.parametrize("name", command_names())
def test_command_has_help_of_its_own(name: str, cli: Cli) -> None:
    command = importlib.import_module(f"torchyard.cli.commands.{module_name(name)}").command
    assert isinstance(command, click.Command)
    assert first_sentence(name)
    ran = cli(name, "--help")
    assert ran.code == 0
    assert f"Usage: torchyard {name}" in ran.out


def test_help_and_version_import_nothing_dear() -> None:
    program = (
        "import sys; from torchyard.cli.main import main; main(['--help']); main(['--version']); "
        "print([m for m in ('click', 'dataclasses', 'json', 'http.client', 'subprocess') if m in sys.modules])"
    )
    ran = python(["-I", "-c", program])
    assert ran.stdout.splitlines()[-2:] == [f"torchyard {__version__}", "[]"]


def test_list_imports_nothing_of_the_server() -> None:
    program = (
        "import sys, torchyard.cli.root, torchyard.cli.commands.list; "
        "dear = ('pydantic', 'sqlalchemy', 'httpx', 'fastapi', 'ruamel', 'asyncio', 'subprocess', 'websockets'); "
        "print([m for m in dear if m in sys.modules])"
    )
    assert python(["-I", "-c", program]).stdout.strip() == "[]"


def test_version(cli: Cli) -> None:
    assert cli("--version").out == cli("version").out == f"torchyard {__version__}\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["lst"], "list"),
        (["rnu", "x"], "run"),
        (["pvc", "lsit"], "list"),
        (["training", "pytroch", "submit"], "pytorch"),
        (["list", "--prject", "x"], "--project"),
        (["run", "--nrpoc", "2", "train.py"], "--nproc-per-node"),
        (["training", "pytorch", "submit", "x", "--worker", "2"], "--workers"),
    ],
)
def test_wrong_names_are_guessed(words: list[str], meant: str, cli: Cli) -> None:
    ran = cli(*words)
    assert ran.code == (125 if words[0] == "run" else 2)
    assert f"ean {meant}?" in ran.err
    assert ran.out == ""


def test_name_like_nothing_is_told_too(cli: Cli) -> None:
    ran = cli("xyzzy")
    assert ran.code == 2
    assert ran.err == "torchyard: there is no command 'xyzzy'\n  see `torchyard --help`\n"


def test_nothing_starts_a_server_that_needs_none(cli: Cli, tmp_path: Path) -> None:
    assert cli("server", "status").code == 1
    assert cli("server", "stop").out == "not running\n"
    assert cli("config", "describe").code == 0


def test_config_set(cli: Cli, home: Path) -> None:
    assert cli("config", "set", "--cp-url", "http://127.0.0.1:9/").code == 0
    assert '"url": "http://127.0.0.1:9"' in (home / ".config/torchyard/config.json").read_text()
    assert "http://127.0.0.1:9" in cli("config", "describe", "--json").out
    assert cli("config", "set", "--cp-url", "nowhere").code == 2
    assert cli("config", "set").code == 2
    assert cli("config", "set", "--cp-url", "").code == 0
    assert '"url": null' in (home / ".config/torchyard/config.json").read_text()


def test_server_that_is_not_there(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TORCHYARD_TOKEN", "t")
    ran = cli("list")
    assert ran.code == 1
    assert ran.err.startswith("torchyard: no torchyard server answers at http://127.0.0.1:9")
    assert cli("wait", "x").code == 125


def test_install_prints_a_unit_that_leaves_training_alone(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHYARD_LOCK_DIR", '/run/4 %"')
    ran = cli("server", "install", "--print")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert "KillMode=process" in lines
    assert 'Environment="TORCHYARD_LOCK_DIR=/run/4 %%\\""' in lines
    assert f'Environment="TORCHYARD_DATA={home / "data"}"' in lines
    assert any(line.startswith("ExecStart=") and line.endswith("-m torchyard.cli.main server run") for line in lines)


def test_install_writes_the_unit_of_this_user(cli: Cli, home: Path) -> None:
    ran = cli("server", "install")
    assert (home / ".config/systemd/user/torchyard.service").read_text().startswith("[Unit]\n")
    assert "systemctl --user enable --now torchyard.service" in ran.out


def test_install_for_an_unknown_user(cli: Cli) -> None:
    assert cli("server", "install", "--user", "nobody").code == 2


@pytest.mark.parametrize(
    ("name", "value", "code", "says"),
    [
        ("TORCHYARD_DATA", "relative", 2, "give an absolute path"),
        ("TORCHYARD_DATA", "/proc/no/such", 2, "/proc/no/such cannot be made"),
        ("TORCHYARD_URL", "nowhere", 2, "is not a server's address"),
        ("TORCHYARD_URL", "http://127.0.0.1:port", 2, "is not a server's address"),
        ("TORCHYARD_URL", "http://127.0.0.1:9", 1, "no torchyard server answers"),
    ],
)
def test_what_cannot_be_used_is_2_and_what_does_not_answer_1(
    cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, name: str, value: str, code: int, says: str
) -> None:
    monkeypatch.setenv("TORCHYARD_TOKEN", "t")
    monkeypatch.setenv(name, value)
    ran = cli("list")
    assert (ran.code, says in ran.err) == (code, True), ran.err
