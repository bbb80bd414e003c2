"""Who the user is to which server: one small file of tokens, each bound to its server's address and renewed in time.

Knows no terminal. The file is for its owner's eyes only.
"""

import contextlib
import fcntl
import json
import os
import shlex
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torchyard.client.config import config_file
from torchyard.client.http import Address, Server
from torchyard.domain.errors import Invalid, Unauthorized

EARLY_SECONDS = 60.0
"""A token is renewed this long before it runs out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Tokens and what they were got with. `name`: a client id or a user; `until`: when `access` runs out."""

    kind: str
    name: str
    access: str
    refresh: str
    until: float


def logins_file(env: Mapping[str, str]) -> Path:
    """Where the file is: beside the settings."""
    return config_file(env).with_name("logins.json")


def with_key(url: str, client_id: str, secret: str, env: Mapping[str, str] = os.environ) -> None:
    """Log in with an access key. Raises Invalid when the secret is wrong."""
    _log_in(url, "access-key", client_id, {"clientId": client_id, "clientSecret": secret}, env)


def with_password(url: str, username: str, password: str, env: Mapping[str, str] = os.environ) -> None:
    """Log in as a person. Raises Invalid when the password is wrong."""
    _log_in(url, "user", username, {"username": username, "password": password}, env)


def forget(url: str, env: Mapping[str, str] = os.environ) -> bool:
    """Log out; False when nobody was logged in there."""
    with _only_one(env):
        known = _read(env)
        found = known.pop(_key(url), None)
        if found is not None:
            _write(known, env)
    return found is not None


def address_of(url: str, env: Mapping[str, str]) -> Address | None:
    """The server with a token that is good for now; None: not logged in there. Raises Unauthorized when it is over."""
    login = _read(env).get(_key(url))
    if login is None:
        return None
    again = _words(url, login)
    if login.until - EARLY_SECONDS <= time.time():
        login = _renewed(url, login, again, env)
    by = f"{'access key' if login.kind == 'access-key' else 'login of'} {login.name}"
    return Address(url, login.access, by, again, login.until - EARLY_SECONDS)


def _log_in(url: str, kind: str, name: str, shown: dict[str, str], env: Mapping[str, str]) -> None:
    grant = "client_credentials" if kind == "access-key" else "password"
    login = _tokens(url, {"grantType": grant, **shown}, Login(kind=kind, name=name, access="", refresh="", until=0))
    with _only_one(env):
        _write(_read(env) | {_key(url): login}, env)


def _renewed(url: str, login: Login, again: str, env: Mapping[str, str]) -> Login:
    try:
        fresh = _tokens(url, {"grantType": "refresh_token", "refreshToken": login.refresh}, login)
    except (Invalid, Unauthorized):
        raise Unauthorized(f"the login of {login.name} at {url} is over: log in again with `{again}`") from None
    # Without room to keep it the token is good all the same; a login of the meantime stays as it is.
    with contextlib.suppress(OSError), _only_one(env):
        known = _read(env)
        if known.get(_key(url)) == login:
            _write(known | {_key(url): fresh}, env)
    return fresh


def _tokens(url: str, ask: dict[str, str], login: Login) -> Login:
    began = time.time()
    with Server(lambda: Address(url, "")) as server:
        answer = server.post("/token", ask)
    try:
        return replace(
            login,
            access=str(answer["accessToken"]),
            refresh=str(answer["refreshToken"]),
            until=began + float(answer["expiresIn"]),
        )
    except (KeyError, TypeError, ValueError):
        raise Invalid(f"{url} gives no tokens", "check the address: it is that of a torchyard server") from None


def _words(url: str, login: Login) -> str:
    who = ["access-key", "--client-id"] if login.kind == "access-key" else ["user", "-u"]
    return shlex.join(["torchyard", "login", *who, login.name, "--url", url])


def _key(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.netloc}".lower()


def _read(env: Mapping[str, str]) -> dict[str, Login]:
    path = logins_file(env)
    try:
        known: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
        return {url: Login(**login) for url, login in known.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}", "it must be yours") from None
    except (ValueError, TypeError, AttributeError):
        raise Invalid(f"{path} holds no logins", "delete it, and log in again") from None


def _write(known: dict[str, Login], env: Mapping[str, str]) -> None:
    path = logins_file(env)
    fresh = path.with_suffix(".new")
    # Made anew each time: nobody else has opened it, and its mode is ours from the first byte on.
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({url: asdict(login) for url, login in known.items()}, file, indent=2)
    fresh.replace(path)


@contextlib.contextmanager
def _only_one(env: Mapping[str, str]) -> Iterator[None]:
    path = logins_file(env).with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Open for writing, since homes on NFS take no other exclusive lock.
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
