"""Access keys under all their names: the secret is shown once, a new one ends the old, nobody sees another's."""

from typing import Any

import httpx
import pytest
from tests.server.people import enter, login, person

NAMES = {
    "access-keys": "clientSecret",
    "service-accounts": "clientSecret",
    "apps": "secret",
    "user-applications": "secret",
}


def keys(http: httpx.Client, path: str) -> list[dict[str, Any]]:
    found = http.get(path).json()
    return list(found["accessKeys"] if path == "/access-keys" else found)


@pytest.mark.parametrize(("path", "secret"), NAMES.items())
def test_a_key_lives(http: httpx.Client, path: str, secret: str) -> None:
    made = http.post(f"/{path}", json={"name": "my_script"})
    assert made.status_code == 201, made.text
    key = made.json()
    assert "_" not in key["id"] and len(key[secret]) > 30 and key["lastLogin"] is None
    (shown,) = keys(http, f"/{path}")
    assert shown["id"] == key["id"] and secret not in shown and key[secret] not in str(shown)
    token = login(http, key["clientId"], key[secret])["accessToken"]
    with enter(http, token) as client:
        assert client.get("/me").json()["username"] == http.get("/me").json()["username"]
        assert http.get(f"/{path}/{key['id']}").json()["lastLogin"] is not None
        fresh = http.post(f"/{path}/{key['id']}/secret").json()[secret]
        assert fresh != key[secret]
        refused = client.get("/me")
        assert refused.status_code == 401 and "new secret" in refused.json()["message"]
    assert login(http, key["clientId"], key[secret], 400)["code"] == 400
    with enter(http, login(http, key["clientId"], fresh)["accessToken"]) as client:
        assert http.patch(f"/{path}/{key['id']}", json={"enabled": False}).json()["enabled"] is False
        assert client.get("/me").status_code == 401
        http.patch(f"/{path}/{key['id']}", json={"enabled": True})
        assert client.get("/me").status_code == 200
        assert http.delete(f"/{path}/{key['id']}").status_code == 204
        assert client.get("/me").status_code == 401
    for answer in (http.get(f"/{path}/{key['id']}"), http.delete(f"/{path}/{key['id']}")):
        assert answer.status_code == 404


def test_names_are_taken_once_and_must_be_good(http: httpx.Client) -> None:
    assert http.post("/access-keys", json={"name": "ab"}).status_code == 201
    taken = http.post("/user-applications", json={"name": "ab"})
    assert taken.status_code == 409 and "another name" in taken.json()["details"]
    assert http.post("/service-accounts", json={"name": "ab"}).status_code == 201
    for bad in ("", "a", "Ab", "1a", "a-", "ab\n", "a'; --", "x" * 64, "../a", "a\u0000b"):
        answer = http.post("/access-keys", json={"name": bad})
        assert answer.status_code == 400, bad


def test_nobody_has_more_than_twenty(http: httpx.Client) -> None:
    for number in range(20):
        assert http.post("/access-keys", json={"name": f"key-{number}"}).status_code == 201
    full = http.post("/access-keys", json={"name": "one-more"})
    assert full.status_code == 409 and "20" in full.json()["message"]
    http.delete(f"/access-keys/{keys(http, '/access-keys')[0]['id']}")
    assert http.post("/access-keys", json={"name": "one-more"}).status_code == 201


def test_another_users_key_is_not_there(http: httpx.Client) -> None:
    key = http.post("/access-keys", json={"name": "mine"}).json()
    with person(http, "ben@example.com") as ben:
        own = ben.post("/access-keys", json={"name": "mine"}).json()
        assert [k["id"] for k in keys(ben, "/access-keys")] == [own["id"]]
        path = f"/access-keys/{key['id']}"
        for answer in (ben.get(path), ben.delete(path), ben.post(path + "/secret")):
            assert answer.status_code == 404
        assert ben.patch(path, json={"enabled": False}).status_code == 404
    assert http.get(f"/access-keys/{key['id']}").json()["enabled"] is True


def test_secrets_are_not_in_the_data_folder(http: httpx.Client, settings: Any) -> None:
    key = http.post("/access-keys", json={"name": "quiet"}).json()
    with person(http, "ben@example.com"):
        pass
    for file in settings.data.glob("torchyard.db*"):
        assert key["clientSecret"].encode() not in file.read_bytes()
