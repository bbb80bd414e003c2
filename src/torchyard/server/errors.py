"""Errors as answers: `{code, message, details, complianceIssues}`. The one place of HTTP that catches everything."""

import json
import logging
from collections.abc import Iterable
from typing import Any, get_type_hints

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchyard.domain.errors import Invalid, Problem, TooLarge, TorchyardError
from torchyard.server.problems import problems_of

log = logging.getLogger("torchyard.server")

MAX_BODY = 10 * 1000 * 1000
"""Bytes of a JSON body."""
MAX_DRAIN = 256 * 1000 * 1000
"""Bytes that we read and throw away so that the sender lives to see our answer."""


def shape(error: TorchyardError) -> dict[str, Any]:
    """The body that tells of an error."""
    body: dict[str, Any] = {"code": error.status, "message": error.message}
    if error.details is not None:
        body["details"] = error.details
    if error.problems:
        body["complianceIssues"] = [
            {"field": problem.field, "details": problem.details, "rule": problem.rule} for problem in error.problems
        ]
    return body


def answer(error: TorchyardError) -> Response:
    """The response that tells of an error."""
    return JSONResponse(shape(error), status_code=error.status)


def invalid(problems: Iterable[Problem]) -> Invalid:
    """One error for all problems: the first is the message, all are listed."""
    found = tuple(problems)
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    message = f"{first.field}: {first.details}" if first.field else first.details
    return Invalid(message + more, problems=found)


def install(app: FastAPI) -> None:
    """Every error of this app is answered in our shape."""
    app.add_exception_handler(TorchyardError, _ours)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, TorchyardError)
    if error.status >= 500:
        log.warning("%s %s: %s", request.method, request.url.path, error.message)
    return answer(error)


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return answer(_bad_json(error.body, first["loc"][-1], str(first["ctx"]["error"])))
    return answer(invalid(problems_of(error.errors(), _body_model(request))))


def _body_model(request: Request) -> type[BaseModel] | None:
    """What the body of this request was to be."""
    hints = get_type_hints(request.scope["endpoint"])
    return next((h for h in hints.values() if isinstance(h, type) and issubclass(h, BaseModel)), None)


def _bad_json(text: Any, position: Any, why: str) -> Invalid:
    # The text is what the request said; json's own error object knows how to count its lines.
    at = json.JSONDecodeError(why, str(text), int(position))
    return Invalid(f"the body is not JSON: {why}: line {at.lineno} column {at.colno}")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {
        404: f"there is nothing at {request.url.path[:200]}",
        405: f"{request.method[:20]} is not possible at {request.url.path[:200]}",
    }
    body = {"code": error.status_code, "message": messages.get(error.status_code, str(error.detail))}
    return JSONResponse(body, status_code=error.status_code, headers=error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)


class Catch:
    """ASGI middleware outside everything: what nobody foresaw is logged and answered, never shown."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, note)
        except Exception:
            log.exception("%s %s failed", scope.get("method", scope["type"]), scope.get("path", ""))
            if scope["type"] != "http" or started:
                raise
            oops = TorchyardError(
                "something went wrong inside the server", "the server's log says what; please report it"
            )
            await answer(oops)(scope, receive, send)


class BodyLimit:
    """ASGI middleware: no body over the limit is ever held in memory. Streaming uploads set limits of their own."""

    def __init__(self, app: ASGIApp, streaming: tuple[str, ...] = ()) -> None:
        self.app = app
        self.streaming = streaming

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].endswith(self.streaming):
            await self.app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > MAX_BODY:
            await _drain(receive)
            await answer(_too_large())(scope, receive, send)
            return
        seen = 0

        async def count() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                await _drain(receive)
                raise HTTPException(413, _too_large().message)
            return message

        await self.app(scope, count, send)


def _too_large() -> TooLarge:
    return TooLarge(f"the body is over {MAX_BODY // 1_000_000} MB", "send files by `pvc cp` or --code")


async def _drain(receive: Receive) -> None:
    seen = 0
    while seen < MAX_DRAIN:
        message = await receive()
        seen += len(message.get("body", b""))
        if not message.get("more_body", False):
            return
