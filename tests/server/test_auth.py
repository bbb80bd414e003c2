"""Who gets in: the token file, sessions by one-time code, names and origins of browsers."""

import stat
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from torchyard.domain.errors import Forbidden, Unauthorized
from torchyard.server import auth
from torchyard.server.auth import Doorkeeper, ensure_token, identify, loopback, refuse


@pytest.fixture
def doorkeeper() -> Doorkeeper:
    return Doorkeeper("s3cret", "ada")


def asking(**headers: str) -> HTTPConnection:
    raw = [(name.lower().encode(), text.encode("latin-1")) for name, text in headers.items()]
    return HTTPConnection({"type": "http", "path": "/", "headers": raw})


def test_the_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = ensure_token(file)
    assert len(token) >= 32 and ensure_token(file) == token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_token_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = ensure_token(file)
    file.chmod(0o644)
    assert ensure_token(file) != token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_empty_token_file_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    assert ensure_token(file)


@pytest.mark.parametrize("header", ["Bearer s3cret", "bearer s3cret", "Bearer  s3cret "])
def test_the_token_is_known(doorkeeper: Doorkeeper, header: str) -> None:
    assert identify(doorkeeper, asking(Authorization=header)) == "ada"


@pytest.mark.parametrize(
    "header", ["", "s3cret", "Basic s3cret", "Bearer", "Bearer s3cre", "Bearer s3crets", "Bearer ü"]
)
def test_other_tokens_are_not(doorkeeper: Doorkeeper, header: str) -> None:
    assert identify(doorkeeper, asking(Authorization=header)) is None


def test_a_code_opens_one_session(doorkeeper: Doorkeeper) -> None:
    code = doorkeeper.mint_code()
    session = doorkeeper.redeem(code)
    assert session is not None
    assert doorkeeper.redeem(code) is None
    assert identify(doorkeeper, asking(Cookie=f"other=1; {auth.COOKIE}={session}")) == "ada"
    # It outlives the server, not the token.
    assert Doorkeeper("s3cret", "ada").knows_session(session)
    assert not Doorkeeper("another", "ada").knows_session(session)


def test_a_code_runs_out(doorkeeper: Doorkeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "CODE_SECONDS", -1)
    code = doorkeeper.mint_code()
    assert doorkeeper.redeem(code) is None


def test_a_session_runs_out(doorkeeper: Doorkeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "SESSION_SECONDS", -1)
    session = doorkeeper.redeem(doorkeeper.mint_code())
    assert session is not None and not doorkeeper.knows_session(session)


@pytest.mark.parametrize("forged", ["", ".", "99999999999.", "99999999999.00", "x.y", "s3cret", "1" * 5000 + ".a"])
def test_a_forged_session_is_nobody(doorkeeper: Doorkeeper, forged: str) -> None:
    assert not doorkeeper.knows_session(forged)


def test_a_session_cannot_be_prolonged(doorkeeper: Doorkeeper) -> None:
    session = doorkeeper.redeem(doorkeeper.mint_code())
    assert session is not None
    expiry, _, signature = session.partition(".")
    assert not doorkeeper.knows_session(f"{int(expiry) + 1}.{signature}")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:80", "127.1.2.3:80", "localhost:1", "LOCALHOST", "[::1]:80", "[::1]"]
)
def test_names_of_this_machine(host: str) -> None:
    assert loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "127.0.0.1.evil.example:80",
        "localhost.evil.example",
        "10.0.0.1",
        "0.0.0.0",
        "[::]",
        "::1",
        "[fe80::1]:8",
    ],
)
def test_other_names_are_refused_whoever_asks(host: str) -> None:
    assert not loopback(host)
    assert isinstance(refuse("/api/v1/health", Headers({"host": host}), "ada"), Forbidden)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:81", "http://localhost:80", ""])
def test_other_origins_are_refused_whoever_asks(origin: str) -> None:
    headers = Headers({"host": "127.0.0.1:80", "origin": origin})
    assert isinstance(refuse("/api/v1/workloads", headers, "ada"), Forbidden)


def test_the_own_origin_may_ask() -> None:
    headers = Headers({"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80"})
    assert refuse("/api/v1/workloads", headers, "ada") is None


@pytest.mark.parametrize(
    "path", ["/api/v1/workloads", "/api/v1/health/", "//", "/static", "/api/v1/../v1/health", "/live"]
)
def test_whoever_is_nobody_sees_open_routes_only(path: str) -> None:
    headers = Headers({"host": "localhost"})
    assert isinstance(refuse(path, headers, None), Unauthorized)
    assert all(refuse(known, headers, None) is None for known in auth.OPEN)
