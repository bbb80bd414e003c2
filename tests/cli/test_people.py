"""An administrator makes keys and users, says what they may do and takes it back; they feel it at the next command."""

import json
from pathlib import Path

import pytest
from tests.cli.yard import Yard, in_terminal


@pytest.fixture
def owner(owner_env: dict[str, str], tmp_path: Path) -> Yard:
    """The command line of the server's owner."""
    return Yard(owner_env, tmp_path)


def log_in(guest: Yard, owner: Yard, name: str, password: str, code: int = 0) -> str:
    url = json.loads(owner.run("whoami", "--json").stdout)["server"]
    return guest.run("login", "user", "-u", name, "--url", url, stdin=password, code=code).stderr


def test_key_is_made_renewed_and_deleted(owner: Yard, guest: Yard) -> None:
    url = json.loads(owner.run("whoami", "--json").stdout)["server"]
    made = json.loads(owner.run("access-key", "create", "night-runs", "-o", "json").stdout)
    login = ("login", "access-key", "--client-id", made["clientId"], "--url", url)
    guest.run(*login, stdin=made["clientSecret"])
    listed = owner.run("access-key", "list").stdout
    assert "night-runs" in listed
    assert made["clientSecret"] not in listed + owner.run("access-key", "list", "--json").stdout

    ran = owner.run("access-key", "rotate", "night-runs")
    assert "shown this once" in ran.stderr
    fresh = ran.stdout.splitlines()[2].split()[-1]
    assert "given a new secret: log in again with" in guest.run("list", code=1).stderr
    guest.run(*login, stdin=made["clientSecret"], code=2)
    guest.run(*login, stdin=fresh)

    assert "add -y" in owner.run("access-key", "delete", "night-runs", stdin="", code=2).stderr
    assert owner.run("access-key", "delete", made["clientId"], "-y").stdout == "night-runs is deleted\n"
    assert "log in again" in guest.run("list", code=1).stderr


def test_user_is_let_in_and_kept_out(owner: Yard, guest: Yard) -> None:
    ran = owner.run("user", "create", "Ben@example.com")
    password = ran.stdout.splitlines()[1].split()[-1]
    assert "torchyard login user -u ben@example.com --url http://" in ran.stderr
    log_in(guest, owner, "ben@example.com", password)
    assert guest.run("list", "-o", "name", code=1).stderr

    words = ("ben@example.com", "--role", "viewer", "--scope", "project:default")
    assert owner.run("user", "grant", *words).stdout == "ben@example.com is viewer at project:default\n"
    assert "already" in owner.run("user", "grant", *words, code=2).stderr
    assert guest.run("project", "list", "-o", "name").stdout == "default\n"
    assert "viewer at project:default" in owner.run("user", "list").stdout
    assert owner.run("user", "revoke", *words).stdout == "ben@example.com is no longer viewer at project:default\n"
    assert "has no role viewer" in owner.run("user", "revoke", *words, code=2).stderr

    owner.run("user", "disable", "ben@example.com")
    assert "switched off: log in again with" in guest.run("list", code=1).stderr
    owner.run("user", "enable", "ben@example.com")
    fresh = json.loads(owner.run("user", "reset-password", "ben@example.com", "--json").stdout)["password"]
    assert "is wrong" in log_in(guest, owner, "ben@example.com", password, code=2)
    log_in(guest, owner, "ben@example.com", fresh)
    assert guest.run("whoami", "-o", "name").stdout == "ben@example.com\n"

    shown, code = in_terminal(owner, ["user", "delete", "ben@example.com"], typed="n\n", prompt="]: ")
    assert (code, "nothing was changed" in shown) == (1, True)
    owner.run("user", "delete", "ben@example.com", "-y")
    assert "ben@example.com" not in owner.run("user", "list", "-o", "name").stdout


@pytest.mark.parametrize("scope", ["system", "department:default", "cluster:local", "project:default"])
def test_role_is_granted_and_taken_away_at_every_scope(owner: Yard, scope: str) -> None:
    name = f"{scope.replace(':', '-')}@example.com"
    owner.run("user", "create", name)
    owner.run("user", "grant", name, "--role", "department-admin", "--scope", scope)
    row = next(row for row in json.loads(owner.run("user", "list", "--json").stdout) if row["username"] == name)
    assert [rule["scopeType"] for rule in row["accessRules"]] == [scope.partition(":")[0]]
    assert f"department-admin at {scope}" in owner.run("user", "list").stdout
    owner.run("user", "revoke", name, "--role", "department-admin", "--scope", scope)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("access-key", "create", "No Name"), "is no good name of a key"),
        (("access-key", "rotate", "none"), "you have no access key 'none'"),
        (("access-key", "crate", "x"), "did you mean create?"),
        (("user", "create", "a b"), "no good name of a user"),
        (("user", "delete", "none@example.com", "-y"), "there is no user 'none@example.com'"),
        (("user", "grant", "x", "--role", "editor", "--scope", "default"), "write project:NAME"),
        (("user", "grant", "x", "--role", "king", "--scope", "system"), "'editor'"),
    ],
)
def test_what_cannot_be_done_is_told(owner: Yard, words: tuple[str, ...], says: str) -> None:
    assert says in owner.run(*words, code=2).stderr


def test_owner_cannot_be_kept_out(owner: Yard) -> None:
    name = owner.run("whoami", "-o", "name").stdout.strip()
    assert "owns this server" in owner.run("user", "disable", name, code=2).stderr
    words = ("user", "revoke", name, "--role", "admin", "--scope", "system")
    assert "nobody can take that away" in owner.run(*words, code=2).stderr
