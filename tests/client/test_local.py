"""This machine's server is found by its files only while it lives; settings are one small file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchyard.client.config import Config, change_config, config_file, load_config, save_config
from torchyard.client.local import connect, crashed, running
from torchyard.domain.errors import Invalid, Unauthorized, Unavailable
from torchyard.settings import started_at


def announce(data: Path, pid: int, started: str | None = None) -> None:
    told = {"url": "http://127.0.0.1:1", "pid": pid, "started": started or started_at(pid)}
    (data / "server.json").write_text(json.dumps(told))


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return child.pid


def test_a_process_with_the_number_of_a_dead_server_is_none(tmp_path: Path) -> None:
    announce(tmp_path, os.getpid(), started="another boot:1")
    assert running(tmp_path) is None
    assert crashed(tmp_path)


def test_live_process_is_a_server(tmp_path: Path) -> None:
    announce(tmp_path, os.getpid())
    found = running(tmp_path)
    assert found is not None
    assert (found.url, found.pid) == ("http://127.0.0.1:1", os.getpid())
    assert not crashed(tmp_path)


def test_dead_process_is_a_crash(tmp_path: Path) -> None:
    announce(tmp_path, dead_pid(), started="a boot:1")
    assert running(tmp_path) is None
    assert crashed(tmp_path)


def test_no_file_is_no_server_and_no_crash(tmp_path: Path) -> None:
    assert running(tmp_path) is None
    assert not crashed(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"url": "x", "pid": "y"}', "null"])
def test_unreadable_file_is_no_server(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.json").write_text(text)
    assert running(tmp_path) is None


def test_process_of_another_user_is_not_ours(tmp_path: Path) -> None:
    # The port of a server that died may be anybody's: nobody else gets the token.
    other = {"user": 65534} if os.getuid() == 0 else {}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, **other) as child:
        announce(tmp_path, child.pid if other else 1)
        assert running(tmp_path) is None
        child.communicate(b"")


def test_nothing_is_started_unless_asked(tmp_path: Path) -> None:
    env = {"TORCHYARD_DATA": str(tmp_path / "data"), "HOME": str(tmp_path)}
    with pytest.raises(Unavailable, match="is not running"):
        connect(env, start=False)
    assert not (tmp_path / "data").exists()


def test_configured_server_gets_the_token_of_the_environment(tmp_path: Path) -> None:
    env = {"TORCHYARD_URL": "http://127.0.0.1:9", "TORCHYARD_TOKEN": "t\n", "HOME": str(tmp_path)}
    address = connect(env).address
    assert (address.url, address.token) == ("http://127.0.0.1:9", "t")


def test_configured_server_without_token_says_so(tmp_path: Path) -> None:
    env = {"TORCHYARD_URL": "http://127.0.0.1:9", "HOME": str(tmp_path), "TORCHYARD_DATA": str(tmp_path)}
    with pytest.raises(Unauthorized, match="you are not logged in at http://127"):
        connect(env)


@pytest.mark.parametrize("url", ["http://192.0.2.7:8080", "http://127.0.0.1.example.com", "https://yard.example.com"])
def test_the_owners_token_goes_to_no_other_machine(tmp_path: Path, url: str) -> None:
    (tmp_path / "token").write_text("owner")
    env = {"TORCHYARD_URL": url, "HOME": str(tmp_path), "TORCHYARD_DATA": str(tmp_path)}
    with pytest.raises(Unauthorized, match="you are not logged in"):
        connect(env)


def test_the_owners_token_goes_to_this_machine(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("owner\n")
    env = {"TORCHYARD_URL": "http://localhost:9", "HOME": str(tmp_path), "TORCHYARD_DATA": str(tmp_path)}
    address = connect(env).address
    assert (address.token, address.by) == ("owner", f"token file {tmp_path / 'token'}")


def test_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    env = {**os.environ, "TORCHYARD_DATA": str(tmp_path), "TORCHYARD_PORT": "many", "HOME": str(tmp_path)}
    with pytest.raises(Invalid, match="TORCHYARD_PORT"):
        connect(env)


def test_settings_are_written_and_read(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    save_config(Config(url="http://x", project="vision"), env)
    assert load_config(env) == Config(url="http://x", project="vision")
    assert load_config({**env, "TORCHYARD_URL": "http://y"}).url == "http://y"
    assert list(config_file(env).parent.iterdir()) == [config_file(env)]


def test_change_keeps_the_rest_and_nothing_of_the_environment(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path), "TORCHYARD_URL": "http://y"}
    save_config(Config(url="http://x", cluster="big"), env)
    change_config(env, project="vision")
    assert load_config({"XDG_CONFIG_HOME": str(tmp_path)}) == Config(url="http://x", project="vision", cluster="big")


def test_no_settings_are_the_defaults(tmp_path: Path) -> None:
    assert load_config({"HOME": str(tmp_path)}) == Config()


@pytest.mark.parametrize("text", ["{", "[]", '{"project": 1}', "\xff"])
def test_broken_settings_are_told(tmp_path: Path, text: str) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    config_file(env).parent.mkdir()
    config_file(env).write_bytes(text.encode("latin-1"))
    with pytest.raises(Invalid, match=r"config\.json"):
        load_config(env)
