"""One server over HTTP: JSON and bytes, errors as domain errors. Knows no route and no terminal.

The standard library's client is used throughout: importing a larger one costs more than `torchyard list` may take.
"""

import http.client
import json
import math
import os
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torchyard.domain.errors import (
    Conflict,
    Forbidden,
    InUse,
    Invalid,
    NotFound,
    Problem,
    TooLarge,
    TorchyardError,
    Unauthorized,
    Unavailable,
)

BASE = "/api/v1"
ANSWER_SECONDS = 60.0
"""How long a server may be silent, three heartbeats of a stream included."""

_ERRORS: dict[int, type[TorchyardError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: InUse,
    413: TooLarge,
    422: Invalid,
    503: Unavailable,
}
_BROKEN = (http.client.HTTPException, OSError)

Body = bytes | Iterable[bytes] | None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens and what lets us in.

    by: where the token comes from. again: the command that logs in anew, "" where none does.
    until: when to ask for another token, by the clock of `time.time`.
    """

    url: str
    token: str
    by: str = ""
    again: str = ""
    until: float = math.inf


class Server:
    """The owner of one kept connection. `locate` is asked again whenever the server has gone away."""

    def __init__(self, locate: Callable[[], Address]) -> None:
        self._locate = locate
        self.address = locate()
        self.patience = ANSWER_SECONDS
        self._kept: http.client.HTTPConnection | None = None

    def get(self, path: str, /, **query: object) -> Any:
        """The JSON of a resource."""
        return self.send("GET", path, query=query)

    def post(self, path: str, body: object = None, *, key: str | None = None) -> Any:
        """Create or act. `key` makes a repeated create the same create."""
        headers = {"Idempotency-Key": key} if key else {}
        return self.send("POST", path, body=None if body is None else encode(body), headers=headers, again=bool(key))

    def delete(self, path: str, /, **query: object) -> Any:
        """Delete a resource."""
        return self.send("DELETE", path, query=query)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        again: bool | None = None,
    ) -> Any:
        """One request on the kept connection; `again`: it may be sent twice when the connection breaks."""
        repeatable = method in ("GET", "HEAD", "DELETE") if again is None else again
        try:
            response = self._ask(method, path, query, body, headers or {}, repeatable)
            raw = response.read()
        except _BROKEN as error:
            self.close()
            raise self._away(error) from None
        if response.status >= 400:
            raise self.refused(response.status, raw)
        return decode(raw)

    def open(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        """A response to be read bit by bit, on a connection of its own. Raises as `send` does; close it when done."""
        connection = self._connection()
        try:
            connection.request(method, target(path, query), headers=self._headers(headers or {}))
            response = connection.getresponse()
            # From here on the response alone keeps the socket: closing it closes all.
            if connection.sock is not None:
                connection.sock.close()
            if response.status >= 400:
                with response:
                    raise self.refused(response.status, response.read())
        except _BROKEN as error:
            connection.close()
            raise self._away(error) from None
        return response

    def relocate(self) -> None:
        """Ask again where the server is: a new one may have taken over at another port."""
        self.close()
        self.address = self._locate()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the kept connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        body: Body,
        headers: Mapping[str, str],
        repeatable: bool,
    ) -> http.client.HTTPResponse:
        reused = self._kept is not None
        self._kept = self._kept or self._connection()
        kind = {"Content-Type": "application/json"} if isinstance(body, bytes) else {}
        try:
            self._kept.request(method, target(path, query), body=body, headers=self._headers({**kind, **headers}))
            return self._kept.getresponse()
        except _BROKEN:
            # The server may have closed the kept connection, or another one may have taken over.
            before = self.address
            if not repeatable or not (body is None or isinstance(body, bytes)):
                raise
            self.relocate()
            if not reused and self.address == before:
                raise
        return self._ask(method, path, query, body, headers, repeatable)

    def _connection(self) -> http.client.HTTPConnection:
        kinds: dict[str, type[http.client.HTTPConnection]] = {
            "http": http.client.HTTPConnection,
            "https": http.client.HTTPSConnection,
        }
        wrong = Invalid(f"{self.address.url!r} is not a server's address", "write it as http://127.0.0.1:8080")
        try:
            parts = urllib.parse.urlsplit(self.address.url)
            port = parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in kinds or not parts.hostname:
            raise wrong
        return kinds[parts.scheme](parts.hostname, port, timeout=self.patience)

    def authorization(self) -> dict[str, str]:
        """The header that lets us in, with a token that is good for now."""
        if self.address.until <= time.time():
            self.address = self._locate()
        return {"Authorization": f"Bearer {self.address.token}"} if self.address.token else {}

    def refused(self, status: int, raw: bytes) -> TorchyardError:
        """The error of an answer; where a login is over, it says how to log in again."""
        error = failure(status, raw)
        if isinstance(error, Unauthorized) and self.address.again:
            return Unauthorized(f"{error.message}: log in again with `{self.address.again}`")
        return error

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**self.authorization(), "Accept": "application/json, */*", **more}

    def _away(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"no torchyard server answers at {self.address.url} ({error or type(error).__name__})",
            "see `torchyard server status`",
        )


def new_key() -> str:
    """An idempotency key."""
    return os.urandom(16).hex()


def encode(body: object) -> bytes:
    """A JSON body."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def decode(raw: bytes) -> Any:
    """The JSON of an answer; None for an empty one."""
    try:
        return json.loads(raw) if raw.strip() else None
    except ValueError:
        raise Unavailable("the answer is not torchyard's", "check the address: `torchyard server status`") from None


def target(path: str, query: Mapping[str, object] | None) -> str:
    """The request target of a path under the API's base. Values that are None are left out."""
    known = {name: _text(value) for name, value in (query or {}).items() if value is not None}
    return BASE + path + (f"?{urllib.parse.urlencode(known)}" if known else "")


def quote(text: str) -> str:
    """A path segment."""
    return urllib.parse.quote(text, safe="")


def failure(status: int, raw: bytes) -> TorchyardError:
    """The domain error that an error answer stands for."""
    try:
        told = json.loads(raw)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("message"), str):
        if status == NotFound.status:
            return NotFound("there is no such thing")
        return Unavailable(f"the server answered {status}", "see `torchyard server status`")
    issues = [
        Problem(str(issue.get("field", "")), str(issue.get("details", "")), str(issue.get("rule", "options")))
        for issue in told.get("complianceIssues") or ()
    ]
    findings = [
        Problem(str(found.get("where", "")), _sentence(found), str(found.get("rule", "")))
        for found in told.get("findings") or ()
        if found.get("severity") == "error"
    ]
    seen = {(problem.field, problem.details) for problem in findings}
    problems = findings + [issue for issue in issues if (issue.field, issue.details) not in seen]
    kind = _ERRORS.get(status, Unavailable if status >= 500 else Invalid)
    return kind(told["message"], told.get("details"), tuple(problems))


def _sentence(finding: Mapping[str, Any]) -> str:
    fix = finding.get("fix")
    return f"{finding.get('message', '')}: {fix}" if fix else str(finding.get("message", ""))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
