"""Tokens: every way to get one, what is in them, and all that is refused."""

import base64
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.people import create, enter

from torchyard.control import tokens
from torchyard.control.throttle import TRIES, WINDOW, Throttle
from torchyard.settings import Settings
from torchyard.store.sealing import Sealer

Json = dict[str, Any]


@pytest.fixture
def key(http: httpx.Client) -> Json:
    return dict(http.post("/access-keys", json={"name": "script"}).json())


def ask(http: httpx.Client, **body: Any) -> httpx.Response:
    return httpx.post(f"{http.base_url}token", json=body, timeout=20)


def form(http: httpx.Client, **body: str) -> httpx.Response:
    return httpx.post(str(http.base_url).replace("/v1/", "/v2/token"), data=body, timeout=20)


@pytest.mark.parametrize(
    "names",
    [
        ("client_credentials", "grantType", "clientId", "clientSecret"),
        ("client_credentials", "grantType", "clientID", "clientSecret"),
        ("app_token", "grantType", "AppId", "AppSecret"),
        ("app_token", "granttype", "appid", "APPSECRET"),
        ("CLIENT_CREDENTIALS", "grant_type", "client_id", "client_secret"),
    ],
)
def test_names_of_any_case(http: httpx.Client, key: Json, names: tuple[str, str, str, str]) -> None:
    grant, *words = names
    answer = ask(http, **dict(zip(words, (grant, key["clientId"], key["clientSecret"]), strict=True)))
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json().keys() == {"accessToken", "idToken", "refreshToken", "expiresIn"}


def test_the_payload_is_clean_in_the_standard_alphabet(http: httpx.Client, key: Json) -> None:
    answer = ask(http, appId=key["clientId"], appSecret=key["clientSecret"]).json()
    payload = answer["accessToken"].split(".")[1]
    claims = json.loads(base64.b64decode(payload + "==", validate=False))
    assert "-" not in payload and "_" not in payload
    assert 0 < claims["exp"] - time.time() <= answer["expiresIn"] == 3600


@given(st.uuids(), st.uuids(), st.uuids(), st.integers(0, 2**31), st.integers(0, 2**40))
def test_no_payload_is_ever_dirty(user: Any, key: Any, nonce: Any, generation: int, at: int) -> None:
    claims = {"aud": tokens.AUDIENCE, "sub": str(user), "gen": generation, "iat": at, "exp": at, "jti": nonce.hex}
    for more in ({}, {"key": str(key)}):
        payload = jwt.encode(claims | more, b"k" * 32, algorithm="HS256").split(".")[1]
        assert not set("-_") & set(payload)


def test_a_refresh_token_gives_an_access_token_and_nothing_else(http: httpx.Client, key: Json) -> None:
    first = ask(http, clientId=key["clientId"], clientSecret=key["clientSecret"]).json()
    with enter(http, first["refreshToken"]) as client:
        refused = client.get("/me")
        assert refused.status_code == 401 and "not for this use" in refused.json()["message"]
    again = ask(http, grantType="refresh_token", refreshToken=first["refreshToken"])
    assert again.status_code == 200 and again.json()["refreshToken"] == first["refreshToken"]
    with enter(http, again.json()["accessToken"]) as client:
        assert client.get("/me").status_code == 200
    assert ask(http, refreshToken=first["accessToken"]).status_code == 400
    http.post(f"/access-keys/{key['id']}/secret")
    assert ask(http, refreshToken=first["refreshToken"]).status_code == 400


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "clientId and clientSecret"),
        ({"grantType": "app_token", "AppId": None, "AppSecret": None}, "clientId and clientSecret"),
        ({"grantType": "password", "username": "x"}, "username and password"),
        ({"grantType": "refresh_token"}, "refreshToken"),
        ({"grantType": "exchange_token", "code": "x"}, "exchange_token"),
        ({"clientId": "a", "CLIENTID": "b"}, "twice"),
        ({"clientId": "nobody", "clientSecret": "x"}, "client id or the secret"),
        ({"username": "nobody", "password": "x"}, "username or the password"),
        ({"refreshToken": "a.b.c"}, "not made by this server"),
        ({"clientId": 7, "clientSecret": "x"}, "clientID"),
    ],
)
def test_what_v1_cannot_do_is_400_with_a_sentence(http: httpx.Client, body: Json, says: str) -> None:
    answer = ask(http, **body)
    assert answer.status_code == 400 and says in answer.json()["message"], answer.text


def test_a_body_that_is_no_json_has_line_and_column(http: httpx.Client) -> None:
    text = '{\n  "grantType": "app_token",\n}'
    answer = httpx.post(f"{http.base_url}token", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and "line 2" in answer.json()["message"], answer.text


def test_a_form_gets_what_rfc_6749_says(http: httpx.Client, key: Json) -> None:
    secret = {"client_id": key["clientId"], "client_secret": key["clientSecret"]}
    answer = form(http, grant_type="client_credentials", **secret)
    assert answer.status_code == 200 and answer.json()["token_type"] == "Bearer"
    with enter(http, answer.json()["access_token"]) as client:
        assert client.get("/me").status_code == 200
    basic = (key["clientId"], key["clientSecret"])
    url = str(http.base_url).replace("/v1/", "/v2/token")
    assert httpx.post(url, data={"grant_type": "client_credentials"}, auth=basic).status_code == 200
    both = httpx.post(url, data={"grant_type": "client_credentials", "client_id": "other"}, auth=basic)
    assert both.status_code == 400 and "twice" in both.json()["error_description"]
    assert form(http, grant_type="refresh_token", refresh_token=answer.json()["refresh_token"]).status_code == 200
    wrong = form(http, grant_type="client_credentials", client_id=key["clientId"], client_secret="no")
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
    assert "description" not in wrong.json() and wrong.json()["error_description"]
    for body, error in (
        ({}, "invalid_request"),
        ({"grant_type": "client_credentials"}, "invalid_request"),
        ({"grant_type": "authorization_code"}, "unsupported_grant_type"),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, "invalid_grant"),
        ({"grant_type": "password", "username": "x", "password": "y"}, "invalid_grant"),
    ):
        answer = form(http, **body)
        assert (answer.status_code, answer.json()["error"]) == (400, error)


def test_a_guesser_waits(http: httpx.Client, key: Json) -> None:
    for _ in range(TRIES):
        assert ask(http, clientId=key["clientId"], clientSecret="no").status_code == 400
    for answer in (
        ask(http, clientId=key["clientId"], clientSecret=key["clientSecret"]),
        form(http, grant_type="client_credentials", client_id=key["clientId"], client_secret="no"),
    ):
        assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= WINDOW
    assert ask(http, clientId="somebody-else", clientSecret="no").status_code == 400


def test_many_guesses_at_once_are_as_few(http: httpx.Client) -> None:
    create(http, "ann@x.org")
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda n: ask(http, username="Ann@x.org", password=f"guess {n}"), range(20)))
    assert sorted(answer.status_code for answer in answers) == [400] * TRIES + [429] * (20 - TRIES)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 50)), max_size=60))
def test_only_a_full_minute_of_wrong_tries_holds_up(tries: list[tuple[str, float]]) -> None:
    throttle = Throttle()
    for client, at in sorted(tries, key=lambda one: one[1]):
        throttle.wrong(client, at)
    for client in "ab":
        wrong = sum(name == client for name, _ in tries)
        assert (throttle.wait(client, 50.0) > 0) == (wrong >= TRIES)
        assert throttle.wait(client, 50.0 + WINDOW) == 0
        throttle.right(client)
        assert throttle.wait(client, 50.0) == 0


def test_forged_tokens_are_refused_with_a_sentence(http: httpx.Client, key: Json, settings: Settings) -> None:
    token = ask(http, clientId=key["clientId"], clientSecret=key["clientSecret"]).json()["accessToken"]
    signing = Sealer(settings.seal_key_file).derive("tokens")
    claims = jwt.decode(token, options={"verify_signature": False})
    head, payload, signature = token.split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    without = {name: value for name, value in claims.items() if name != "exp"}
    for bad, says in (
        (f"{none}.{payload}.", "not made by this server"),
        (f"{none}.{payload}.{signature}", "not made by this server"),
        (f"{head}.{payload}.{signature[:-4]}AAAA", "not made by this server"),
        (f"{head}.{payload[:-4]}AAAA.{signature}", "not made by this server"),
        ("..", "not made by this server"),
        ("a.b.c", "not made by this server"),
        (jwt.encode(claims, b"x" * 32, algorithm="HS256"), "not made by this server"),
        (jwt.encode(claims, signing.ljust(64, b"\0"), algorithm="HS512"), "not made by this server"),
        (jwt.encode(without, signing, algorithm="HS256"), "not made by this server"),
        (jwt.encode(claims | {"exp": int(time.time()) - 1}, signing, algorithm="HS256"), "has expired"),
        (jwt.encode(claims | {"aud": "else"}, signing, algorithm="HS256"), "not for this use"),
        (jwt.encode(claims | {"sub": "nobody"}, signing, algorithm="HS256"), "deleted or switched off"),
        (jwt.encode(claims | {"gen": 7}, signing, algorithm="HS256"), "new secret"),
        (jwt.encode(claims | {"key": "nobody"}, signing, algorithm="HS256"), "deleted"),
    ):
        with enter(http, bad) as client:
            answer = client.get("/me")
        assert answer.status_code == 401 and says in answer.json()["message"], (bad, answer.text)
        assert answer.headers["www-authenticate"] == "Bearer"
    with enter(http, token) as client:
        assert client.get("/me").status_code == 200


def test_a_key_does_not_borrow_another_users_name(http: httpx.Client, key: Json, settings: Settings) -> None:
    """Even who had the signing key could not make a key speak for somebody whose it is not."""
    other = create(http, "ben@x.org")
    token = ask(http, clientId=key["clientId"], clientSecret=key["clientSecret"]).json()["accessToken"]
    claims = jwt.decode(token, options={"verify_signature": False})
    signing = Sealer(settings.seal_key_file).derive("tokens")
    with enter(http, jwt.encode(claims | {"sub": other["id"]}, signing, algorithm="HS256")) as client:
        assert client.get("/me").status_code == 401


def test_a_bad_token_does_not_close_an_open_route(http: httpx.Client) -> None:
    with enter(http, "a.b.c") as client:
        assert client.get("/health").status_code == 200


def test_a_user_that_there_is_not_takes_as_long(http: httpx.Client) -> None:
    create(http, "ann@x.org")

    def seconds(name: str) -> float:
        begun = time.perf_counter()
        assert ask(http, username=name, password="wrong").status_code == 400
        return time.perf_counter() - begun

    known, unknown = (min(seconds(name) for _ in range(4)) for name in ("ann@x.org", "eve@x.org"))
    assert unknown > known / 3, "the quickest of each: what a password costs is there in both"
