"""Who asks and from where: tokens, the token file, the page's cookie, the Host and Origin of a browser."""

import hashlib
import hmac
import ipaddress
import os
import pwd
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from torchyard.control import tokens
from torchyard.control.yard import Actor
from torchyard.domain.errors import Forbidden, TorchyardError, Unauthorized
from torchyard.server.errors import answer

OPEN = frozenset({"/api/v1/health", "/api/v1/token", "/api/v2/token", "/openapi.json", "/"})
"""Routes that need no token. `/` is the log-in: without a session it shows a page that says how to get one."""
OPEN_FOLDERS = ("/static/",)

COOKIE = "torchyard"
SESSION_SECONDS = 12 * 3600
CODE_SECONDS = 60


def os_user() -> str:
    """The name of the OS user who owns this server."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def ensure_token(path: Path) -> str:
    """The token in this file; made at the first start, and made anew when others could read it."""
    try:
        if path.stat().st_mode & 0o077 == 0 and (token := path.read_text().strip()):
            return token
        path.unlink()
    except FileNotFoundError:
        pass
    # Linked into place whole, so that of two servers that start at once both read the same one.
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text().strip()


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """Recognises the user by token or by a session that a one-time code opened."""

    token: str = field(repr=False)
    user: str
    _codes: dict[str, float] = field(default_factory=dict, repr=False)

    def knows_token(self, token: str) -> bool:
        """It is the content of the token file."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def mint_code(self) -> str:
        """A code that opens one session within a minute."""
        now = time.monotonic()
        for code in [code for code, until in self._codes.items() if until < now]:
            del self._codes[code]
        code = secrets.token_urlsafe(24)
        self._codes[code] = now + CODE_SECONDS
        return code

    def redeem(self, code: str) -> str | None:
        """A session for a fresh code, once; None for any other."""
        until = self._codes.pop(code, None)
        if until is None or until < time.monotonic():
            return None
        expiry = str(int(time.time()) + SESSION_SECONDS)
        return f"{expiry}.{self._sign(expiry)}"

    def knows_session(self, session: str) -> bool:
        """It was opened here (or by an earlier server with the same token) and has not run out."""
        expiry, _, signature = session.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(expiry).encode()):
            return False
        return int(expiry) > time.time()

    def _sign(self, expiry: str) -> str:
        return hmac.new(self.token.encode(), f"session {expiry}".encode(), hashlib.sha256).hexdigest()


class Gate:
    """ASGI middleware in front of everything: nobody gets in who was not asked for by name."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self.app = app
        self.doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        actor, why = await self._recognise(connection)
        user = actor.name if actor else None
        refusal = refuse(scope["path"], connection.headers, user)
        if refusal is None:
            scope.setdefault("state", {}).update(user=user, actor=actor)
            await self.app(scope, receive, send)
            return
        response = answer(why if why is not None and isinstance(refusal, Unauthorized) else refusal)
        if isinstance(refusal, Unauthorized):
            response.headers["WWW-Authenticate"] = "Bearer"
        await _deny(response, scope, receive, send)

    async def _recognise(self, connection: HTTPConnection) -> tuple[Actor | None, Unauthorized | None]:
        """Who it is, or why a token that was sent is worth nothing."""
        yard = connection.app.state.yard
        token = bearer(connection)
        if token is None or token.count(".") != 2:
            return (yard.owner if identify(self.doorkeeper, connection) is not None else None), None
        try:
            return await tokens.recognise(yard, token), None
        except Unauthorized as why:
            return None, why


def bearer(connection: HTTPConnection) -> str | None:
    """The token that the request came with."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def identify(doorkeeper: Doorkeeper, connection: HTTPConnection) -> str | None:
    """The owner's name when they ask with the token file or a session; None for anybody else."""
    token = bearer(connection)
    if token is not None and doorkeeper.knows_token(token):
        return doorkeeper.user
    session = connection.cookies.get(COOKIE)
    if session is not None and doorkeeper.knows_session(session):
        return doorkeeper.user
    return None


def refuse(path: str, headers: Headers, user: str | None) -> TorchyardError | None:
    """Why this request may not pass, or None. A name that an attacker points at 127.0.0.1 is refused as Host."""
    host = headers.get("host", "")
    if not loopback(host):
        return Forbidden(f"this server does not answer to the name {host[:80]!r}", "use the URL that torchyard printed")
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return Forbidden("another site's page may not use this server", "open the page that torchyard printed")
    if user is None and path not in OPEN and not path.startswith(OPEN_FOLDERS):
        return Unauthorized(
            "no valid token",
            "send `Authorization: Bearer TOKEN` with a token of /api/v1/token, "
            "or with the content of the file `token` in the server's data folder",
        )
    return None


def loopback(host: str) -> bool:
    """A Host header names this machine: `127.0.0.1:8000`, `[::1]`, `localhost`."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


async def _deny(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await response(scope, receive, send)
    else:
        await WebSocket(scope, receive, send).send_denial_response(response)
