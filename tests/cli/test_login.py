"""People and scripts come in from another machine: log in, be told who one is, log out. The owner lets them in."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard, in_terminal

from torchyard.client import Server, connect


@pytest.fixture
def owner(owner_env: dict[str, str]) -> Iterator[Server]:
    """The connection of the server's owner."""
    with connect(owner_env) as connection:
        yield connection


@pytest.fixture
def url(owner: Server) -> str:
    return owner.address.url


@pytest.fixture
def key(owner: Server, request: pytest.FixtureRequest) -> dict[str, str]:
    """An access key of the owner's."""
    made: dict[str, str] = owner.post("/access-keys", {"name": f"key-{abs(hash(request.node.name))}"})
    return made


def tokens(guest: Yard) -> Path:
    return Path(guest.env["HOME"]) / ".config/torchyard/logins.json"


def test_script_logs_in_with_a_key_and_out(guest: Yard, key: dict[str, str], url: str) -> None:
    ran = guest.run("login", "access-key", "--client-id", key["clientId"], "--url", url, stdin=key["clientSecret"])
    assert (ran.stdout, ran.stderr) == (f"logged in at {url} with access key {key['clientId']}\n", "")
    assert tokens(guest).stat().st_mode & 0o777 == 0o600
    assert key["clientSecret"] not in tokens(guest).read_text()
    assert guest.run("list", "-o", "name").stdout == ""
    shown = json.loads(guest.run("whoami", "--json").stdout)
    assert (shown["server"], shown["by"]) == (url, f"access key {key['clientId']}")
    token = guest.run("auth", "get-token").stdout.strip()
    assert token.count(".") == 2
    by_hand = guest.env | {"TORCHYARD_URL": url, "TORCHYARD_TOKEN": token, "HOME": guest.env["HOME"] + "/none"}
    assert json.loads(Yard(by_hand, guest.folder).run("whoami", "--json").stdout)["by"] == "TORCHYARD_TOKEN"

    assert guest.run("logout").stdout == f"logged out of {url}\n"
    assert token not in tokens(guest).read_text()
    assert guest.run("logout").stdout == f"you were not logged in at {url}\n"
    refused = guest.run("list", code=1).stderr
    assert refused.startswith(f"torchyard: you are not logged in at {url}\n  `torchyard login access-key")
    assert not Path(guest.env["TORCHYARD_DATA"]).exists()


@pytest.mark.parametrize("word", ["application", "app"])
def test_secret_from_a_file_and_older_words(guest: Yard, key: dict[str, str], url: str, word: str) -> None:
    file = guest.folder / "secret"
    file.write_text(key["clientSecret"] + "\n")
    guest.run("login", word, "--client-id", key["clientId"], "--secret-file", str(file), "--url", url)
    assert guest.run("whoami", "-o", "name").stdout


def test_secret_among_the_words_is_taken_and_warned_of(guest: Yard, key: dict[str, str], url: str) -> None:
    words = ("login", "access-key", "--client-id", key["clientId"], "--secret", key["clientSecret"])
    ran = guest.run(*words, "--url", url + "/")
    assert "list of processes" in ran.stderr
    assert guest.run("whoami", "--json").stdout


def test_person_logs_in_with_a_password_typed_unseen(guest: Yard, owner: Server, url: str) -> None:
    made = owner.post("/users", {"email": "ann@example.com"})
    words = ["login", "user", "-u", "ann@example.com", "--url", url]
    shown, code = in_terminal(guest, words, typed=made["tempPassword"] + "\n", prompt="Password: ")
    assert (code, made["tempPassword"] in shown) == (0, False), shown
    assert f"logged in at {url} as ann@example.com" in shown
    assert "login of ann@example.com" in guest.run("whoami").stdout

    owner.post(f"/users/{made['id']}/logout")
    refused = guest.run("list", code=1).stderr
    again = f"`torchyard login user -u ann@example.com --url {url}`"
    assert refused == f"torchyard: this session was ended: log in again with {again}\n"


def test_wrong_secret_is_told_and_nothing_is_kept(guest: Yard, key: dict[str, str], url: str) -> None:
    ran = guest.run("login", "access-key", "--client-id", key["clientId"], "--url", url, stdin="wrong", code=2)
    assert "the client id or the secret is wrong" in ran.stderr
    assert not tokens(guest).exists()
    assert guest.run("config", "describe").stdout.startswith("Url:      this machine's own server")


def test_bytes_that_are_no_text_are_a_wrong_secret(guest: Yard, key: dict[str, str], url: str) -> None:
    file = guest.folder / "secret"
    file.write_bytes(b"\xff\xfe")
    words = ("login", "access-key", "--client-id", key["clientId"], "--secret-file", str(file), "--url", url)
    assert "the client id or the secret is wrong" in guest.run(*words, code=2).stderr


def test_key_that_was_deleted_says_so_in_one_line(guest: Yard, owner: Server, key: dict[str, str], url: str) -> None:
    guest.run("login", "app", "--client-id", key["clientId"], "--url", url, stdin=key["clientSecret"] + "\n")
    owner.delete(f"/access-keys/{key['id']}")
    refused = guest.run("list", code=1).stderr
    assert refused.startswith("torchyard: the access key of this token was deleted")
    assert f"log in again with `torchyard login access-key --client-id {key['clientId']} --url {url}`" in refused
    assert refused.count("\n") == 1


def test_login_is_renewed_as_long_as_the_server_lets_it(guest: Yard, key: dict[str, str], url: str) -> None:
    words = ("login", "access-key", "--client-id", key["clientId"], "--url", url)
    guest.run(*words, stdin=key["clientSecret"])
    first = guest.run("auth", "get-token").stdout

    def age(**changes: str) -> None:
        known = json.loads(tokens(guest).read_text())
        tokens(guest).write_text(json.dumps({url: known[url] | {"until": 0} | changes}))

    age()
    second = guest.run("auth", "get-token").stdout
    assert second != first
    assert guest.run("auth", "get-token").stdout == second
    guest.run("list")

    age(refresh=first.strip())
    refused = guest.run("list", code=1).stderr
    again = f"log in again with `torchyard login access-key --client-id {key['clientId']} --url {url}`"
    assert refused == f"torchyard: the login of {key['clientId']} at {url} is over: {again}\n"
    guest.run(*words, stdin=key["clientSecret"])
    guest.run("list")


def test_what_is_set_in_the_environment_wins_and_is_told(guest: Yard, key: dict[str, str], url: str) -> None:
    words = ("login", "app", "--client-id", key["clientId"], "--url", url)
    env = guest.env | {"TORCHYARD_TOKEN": "t", "TORCHYARD_URL": "http://127.0.0.1:9"}
    ran = Yard(env, guest.folder).run(*words, stdin=key["clientSecret"])
    assert ran.stderr.splitlines() == [
        "TORCHYARD_TOKEN is set and wins over this login",
        "TORCHYARD_URL is set and wins: commands go to that server",
    ]


def test_owner_needs_no_login(owner_env: dict[str, str], owner: Server, tmp_path: Path) -> None:
    own = Yard(owner_env, tmp_path)
    assert "lets you in without a login" in own.run("login", "user", "-u", "ann", stdin="x", code=2).stderr
    assert own.run("logout").stdout == "you were not logged in\n"
    shown = json.loads(own.run("whoami", "--json").stdout)
    assert (shown["server"], shown["by"]) == (owner.address.url, f"token file {owner_env['TORCHYARD_DATA']}/token")
    assert own.run("auth", "get-token").stdout.strip() == owner.address.token


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("login", "app", "--client-id", "x", "--url", "nowhere"), "'nowhere' is no address"),
        (("login", "app", "--client-id", "x", "--url", "http://127.0.0.1:9"), "stdin holds no secret"),
        (("login", "user", "-u", "x", "--url", "http://127.0.0.1:9"), "stdin holds no password"),
        (("login", "app", "--client-id", "x", "--secret", "a", "--secret-file", "/dev/null"), "not both"),
        (("login", "app", "--client-id", "x", "--secret-file", "/none"), "/none"),
        (("login", "app", "--client-id", "x", "--secret", "a", "--url", "http://["), "is not a server's address"),
        (("login", "usr"), "did you mean user?"),
    ],
)
def test_what_cannot_be_used_is_told(guest: Yard, words: tuple[str, ...], says: str) -> None:
    assert says in guest.run(*words, stdin="", code=2).stderr
