"""People for tests: somebody with a password and roles, and how they come in."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

Json = dict[str, Any]
ADMINISTRATOR, DEPARTMENT, EDITOR, VIEWER = 1, 2, 3, 4


def login(http: httpx.Client, client: str, secret: str, expect: int = 200) -> Json:
    """What the token route says to a client id and a secret."""
    body = {"grantType": "client_credentials", "clientId": client, "clientSecret": secret}
    answer = httpx.post(f"{http.base_url}token", json=body, timeout=20)
    assert answer.status_code == expect, answer.text
    return dict(answer.json())


def enter(http: httpx.Client, token: str) -> httpx.Client:
    """A client of the same server with another token."""
    return httpx.Client(base_url=http.base_url, headers={"Authorization": f"Bearer {token}"}, timeout=20)


def create(http: httpx.Client, email: str) -> Json:
    made = http.post("/users", json={"email": email})
    assert made.status_code == 201, made.text
    return dict(made.json())


def grant(http: httpx.Client, user: str, role: int, scope: str = "system", scope_id: str = "") -> Json:
    rule = {"subjectId": user, "subjectType": "user", "roleId": role, "scopeType": scope, "scopeId": scope_id}
    answer = http.post("/authorization/access-rules", json=rule)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


@contextmanager
def person(
    http: httpx.Client, email: str, *roles: int, scope: str = "system", scope_id: str = ""
) -> Iterator[httpx.Client]:
    """A new user with these roles, logged in."""
    made = create(http, email)
    for role in roles:
        grant(http, made["id"], role, scope, scope_id)
    body = {"username": email, "password": made["tempPassword"]}
    answer = httpx.post(f"{http.base_url}token", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    with enter(http, answer.json()["accessToken"]) as client:
        yield client
