"""Errors as answers: `{code, message, details, complianceIssues}`. The one place of HTTP that catches everything."""

import logging
import re
from collections.abc import Sequence
from typing import Any, get_type_hints

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from pydantic import BaseModel
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from torchyard.domain.document import parse_text
from torchyard.domain.errors import Invalid, TooLarge, TooMany, TorchyardError
from torchyard.domain.submission import problems_of

log = logging.getLogger("torchyard.server")

_SECRET = re.compile("secret|password|token", re.IGNORECASE)
"""Fields whose values no answer repeats."""

MAX_BODY = 10 * 1000 * 1000
"""Bytes of a JSON body."""
MAX_DRAIN = 256 * 1000 * 1000
"""Bytes that we read and throw away so that the sender lives to see our answer."""


class Issue(BaseModel):
    """One thing wrong with an input."""

    field: str
    details: str
    rule: str


class Error(BaseModel):
    """What every answer of status 400 and above says."""

    code: int
    message: str
    details: str | None = None
    complianceIssues: list[Issue] | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Error, "description": "The request cannot be carried out as it is"},
    "5XX": {"model": Error, "description": "The server cannot do it now"},
}


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
    headers = {"Retry-After": str(error.seconds)} if isinstance(error, TooMany) else None
    return JSONResponse(shape(error), status_code=error.status, headers=headers)


def install(app: FastAPI) -> None:
    """Every error of this app is answered in our shape."""
    app.add_exception_handler(TorchyardError, _ours)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(WebSocketRequestValidationError, _socket_not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)


async def _ours(request: Request, error: Exception) -> Response:
    # Of a WebSocket too, before it is accepted: then the answer is sent as a refusal.
    assert isinstance(error, TorchyardError)
    if error.status >= 500:
        log.warning("%s %s: %s", request.scope.get("method", "WEBSOCKET"), request.url.path, error.message)
    return answer(error)


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        return answer(_bad_json(str(error.body), found[0]))
    model = _body_model(request) if found[0]["loc"][0] == "body" else BaseModel
    return answer(_invalid(found, model, _advice(error.body)))


async def _socket_not_valid(socket: WebSocket, error: Exception) -> None:
    assert isinstance(error, WebSocketRequestValidationError)
    await socket.send_denial_response(answer(_invalid(error.errors(), BaseModel, None)))


def _invalid(found: Sequence[Any], model: type[BaseModel], advice: str | None) -> Invalid:
    problems = problems_of([_without_place(one) for one in found], model)
    sentences = [f"{p.field}: {p.details}" if p.field else p.details for p in problems]
    more = f"; and {len(sentences) - 5} more" if len(sentences) > 5 else ""
    return Invalid("; ".join(sentences[:5]) + more, advice, problems)


def _without_place(error: Any) -> ErrorDetails:
    """The error without `body` or `query` before its field, and without a value that may be secret."""
    loc = tuple(error["loc"][1:])
    value = error["input"]
    if "environment" in loc and not isinstance(value, dict):
        value = {}
    if any(isinstance(part, str) and _SECRET.search(part) for part in loc):
        value = "a secret value"
    return ErrorDetails(type=error["type"], loc=loc, msg=error["msg"], input=value, ctx=error.get("ctx", {}))


def _advice(body: Any) -> str | None:
    # FastAPI hands us the raw bytes when the request did not say that they are JSON.
    return "send it with the header `Content-Type: application/json`" if isinstance(body, bytes) else None


def _body_model(request: Request) -> type[BaseModel]:
    """What the body of this request was to be."""
    hints = get_type_hints(request.scope["endpoint"])
    return next((h for h in hints.values() if isinstance(h, type) and issubclass(h, BaseModel)), BaseModel)


def _bad_json(text: str, found: Any) -> TorchyardError:
    try:
        parse_text(text, "body.json")
    except TorchyardError as error:
        return error
    return Invalid(f"the body is not JSON: {found['ctx']['error']}")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    match error.status_code, error.__cause__:
        case 404, _:
            message = f"there is nothing at {request.url.path[:200]}"
        case 405, _:
            message = f"{request.method[:20]} is not possible at {request.url.path[:200]}"
        case 400, RecursionError():
            message = "the body is nested too deep"
        case 400, UnicodeDecodeError():
            message = "the body is not UTF-8"
        case _:
            message = str(error.detail)
    body = {"code": error.status_code, "message": message}
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
                if message.get("more_body", False):
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
