"""A login belongs to one server, is renewed in time, and says in one line when it is over."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.client.test_http import answering, said

from torchyard.client import connect, logins
from torchyard.domain.errors import Invalid, Unauthorized

TOKENS = {"accessToken": "first", "refreshToken": "again", "expiresIn": 3600}


def environment(home: Path, url: str) -> dict[str, str]:
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "TORCHYARD_DATA": str(home / "data"), "TORCHYARD_URL": url}


def age(env: dict[str, str], seconds: float) -> None:
    """Make all logins as old as this."""
    known = json.loads(logins.logins_file(env).read_text())
    for login in known.values():
        login["until"] -= seconds
    logins.logins_file(env).write_text(json.dumps(known))


def test_login_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    with answering(said("200 OK", TOKENS)) as (url, asked):
        env = environment(tmp_path, url)
        logins.with_key(url, "ty-1", "hush", env)
    assert b"Authorization" not in asked[0]
    path = logins.logins_file(env)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {each.stat().st_mode & 0o077 for each in path.parent.iterdir()} == {0}
    assert "hush" not in path.read_text()
    address = connect(env).address
    assert (address.token, address.by) == ("first", "access key ty-1")


def test_login_is_of_one_server(tmp_path: Path) -> None:
    with answering(said("200 OK", TOKENS)) as (url, _):
        env = environment(tmp_path, url)
        logins.with_password(url, "ann", "hush", env)
    assert connect(env | {"TORCHYARD_URL": url.upper().replace("HTTP", "http") + "/"}).address.token == "first"
    with pytest.raises(Unauthorized, match="you are not logged in"):
        connect(env | {"TORCHYARD_URL": "http://127.0.0.1:9"})
    assert connect(env | {"TORCHYARD_TOKEN": "mine"}).address.token == "mine"
    assert logins.forget(url, env)
    assert not logins.forget(url, env)


def test_token_is_renewed_before_it_runs_out_in_a_command_that_goes_on(tmp_path: Path) -> None:
    short, fresh = TOKENS | {"expiresIn": logins.EARLY_SECONDS + 0.3}, TOKENS | {"accessToken": "second"}
    answers = [said("200 OK", short), said("200 OK", {}), said("200 OK", fresh), said("200 OK", {})]
    with answering(*answers, close_after=True) as (url, asked):
        env = environment(tmp_path, url)
        logins.with_key(url, "ty-1", "hush", env)
        server = connect(env)
        server.get("/me")
        time.sleep(0.4)
        server.get("/me")
        server.close()
    assert [b"Bearer first" in asked[1], b"Bearer second" in asked[3]] == [True, True]
    assert b"hush" not in asked[2]
    assert connect(env).address.token == "second"


def test_login_that_is_over_says_how_to_go_on_in_one_line(tmp_path: Path) -> None:
    over = said("400 Bad Request", {"code": 400, "message": "the token has expired"})
    with answering(said("200 OK", TOKENS), over, close_after=True) as (url, _):
        env = environment(tmp_path, url)
        logins.with_password(url, "ann's", "hush", env)
        age(env, 3600)
        with pytest.raises(Unauthorized) as told:
            connect(env)
    assert told.value.whole.endswith(f""": log in again with `torchyard login user -u 'ann'"'"'s' --url {url}`""")


def test_session_that_was_ended_says_how_to_go_on(tmp_path: Path) -> None:
    ended = said("401 Unauthorized", {"code": 401, "message": "this session was ended", "details": "log in again"})
    with answering(said("200 OK", TOKENS), ended, close_after=True) as (url, _):
        env = environment(tmp_path, url)
        logins.with_key(url, "ty-1", "hush", env)
        with connect(env) as server, pytest.raises(Unauthorized) as told:
            server.get("/me")
    again = f"torchyard login access-key --client-id ty-1 --url {url}"
    assert told.value.whole == f"this session was ended: log in again with `{again}`"


def test_logins_at_once_are_all_kept(tmp_path: Path) -> None:
    with ExitStack() as servers, ThreadPoolExecutor() as pool:
        urls = [servers.enter_context(answering(said("200 OK", TOKENS)))[0] for _ in range(8)]
        env = environment(tmp_path, urls[0])
        list(pool.map(lambda url: logins.with_password(url, "ann", "hush", env), urls))
    assert set(json.loads(logins.logins_file(env).read_text())) == set(urls)


@pytest.mark.parametrize("answer", [{}, {"accessToken": "a", "refreshToken": "b", "expiresIn": "soon"}, ["a"]])
def test_answer_without_tokens_is_no_login(tmp_path: Path, answer: object) -> None:
    with answering(said("200 OK", answer)) as (url, _):
        env = environment(tmp_path, url)
        with pytest.raises(Invalid, match="gives no tokens"):
            logins.with_key(url, "ty-1", "hush", env)
    assert not logins.logins_file(env).exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"http://x": {}}', '{"http://x": 1}', "\xff"])
def test_broken_file_is_told(tmp_path: Path, text: str) -> None:
    env = environment(tmp_path, "http://127.0.0.1:9")
    logins.logins_file(env).parent.mkdir()
    logins.logins_file(env).write_bytes(text.encode("latin-1"))
    with pytest.raises(Invalid, match=r"logins\.json holds no logins"):
        connect(env)
