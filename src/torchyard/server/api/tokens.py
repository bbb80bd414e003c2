"""Tokens for clients: a JSON body under /v1, a form under /v2, one implementation."""

from base64 import b64decode
from collections.abc import Awaitable
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from fastapi import APIRouter
from pydantic import ConfigDict, Field, model_validator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from torchyard.control import tokens
from torchyard.control.tokens import Issued, WrongSecret
from torchyard.control.yard import Yard
from torchyard.domain.errors import Invalid, Problem, TooMany, TorchyardError, Unauthorized
from torchyard.domain.model import Model
from torchyard.server.body import tidy
from torchyard.server.deps import YardNow
from torchyard.server.errors import RESPONSES, shape
from torchyard.server.shapes import Json

router = APIRouter(tags=["tokens"])

KNOWN = ("client_credentials", "app_token", "password", "refresh_token")
NO_STORE = {"Cache-Control": "no-store"}


class Ask(Model):
    """What is shown for a token. Upper and lower case of the names do not matter; other fields are passed over."""

    model_config = ConfigDict(extra="ignore")

    grant_type: str | None = Field(None, max_length=64)
    client_id: str | None = Field(None, alias="clientID", max_length=255)
    client_secret: str | None = Field(None, max_length=1024, repr=False)
    app_id: str | None = Field(None, alias="appID", max_length=255)
    app_secret: str | None = Field(None, max_length=1024, repr=False)
    username: str | None = Field(None, max_length=255)
    password: str | None = Field(None, max_length=1024, repr=False)
    refresh_token: str | None = Field(None, max_length=8192, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        value = tidy(value)
        if not isinstance(value, dict):
            return value
        names = {_plain(field.alias or name): field.alias or name for name, field in cls.model_fields.items()}
        found: Json = {}
        for key, item in value.items():
            name = names.get(_plain(str(key)), str(key))
            if found.setdefault(name, item) != item:
                raise ValueError(f"{name} is given twice")
        return found


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


@router.post("/v1/token", operation_id="createToken", responses=RESPONSES)
async def create(body: Ask, yard: YardNow) -> Response:
    """A token for a client id and its secret, a password, or a refresh token.

    `grantType` may be left out. A wrong secret is 400: clients that exist try a 401 again and again.
    """
    try:
        issued = await _issue(yard, body)
    except Unauthorized as wrong:
        raise Invalid(wrong.message, wrong.details) from None
    answer = {
        "accessToken": issued.access,
        "idToken": issued.access,
        "refreshToken": issued.refresh,
        "expiresIn": issued.seconds,
    }
    return JSONResponse(answer, headers=NO_STORE)


FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["grant_type"],
                    "properties": {
                        name: {"type": "string"}
                        for name in (
                            "grant_type",
                            "client_id",
                            "client_secret",
                            "username",
                            "password",
                            "refresh_token",
                        )
                    },
                }
            }
        },
    }
}


@router.post("/v2/token", operation_id="createOauthToken", responses=RESPONSES, openapi_extra=FORM)
async def create_oauth(request: Request, yard: YardNow) -> Response:
    """A token as RFC 6749 has it: a form in, `error` and `error_description` when it cannot be."""
    try:
        body = _form(await request.body(), _basic(request.headers.get("authorization", "")))
        issued = await _issue(yard, body)
    except TorchyardError as error:
        return _oauth_error(error)
    answer = {
        "access_token": issued.access,
        "id_token": issued.access,
        "refresh_token": issued.refresh,
        "token_type": "Bearer",
        "expires_in": issued.seconds,
    }
    return JSONResponse(answer, headers=NO_STORE)


class Unsupported(Invalid):
    """A grant type that we do not have."""


def _issue(yard: Yard, body: Ask) -> Awaitable[Issued]:
    """Raises Invalid, Unauthorized, TooMany."""
    grant = body.grant_type or _guess(body)
    match grant.lower():
        case "client_credentials" | "app_token":
            client = _given("clientId and clientSecret", body.client_id or body.app_id)
            secret = _given("clientId and clientSecret", body.client_secret or body.app_secret)
            return tokens.for_key(yard, client, secret)
        case "password":
            username = _given("username and password", body.username)
            return tokens.for_password(yard, username, _given("username and password", body.password))
        case "refresh_token":
            return tokens.for_refresh(yard, _given("refreshToken", body.refresh_token))
        case _:
            what = f"there is no grant type {grant[:64]!r} here"
            raise Unsupported(what, f"send one of {', '.join(KNOWN)}", (Problem("grantType", what),))


def _guess(body: Ask) -> str:
    if body.refresh_token:
        return "refresh_token"
    return "password" if body.username and not (body.client_id or body.app_id) else "client_credentials"


def _given(names: str, value: str | None) -> str:
    if not value:
        raise Invalid(f"this grant needs {names}", "make an access key; its secret is shown once")
    return value


def _basic(header: str) -> dict[str, list[str]]:
    """Client id and secret where the client sends them as a header, as RFC 6749 would rather have it."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return {}
    try:
        client, _, secret = b64decode(text, validate=True).decode().partition(":")
    except ValueError:
        raise Invalid("the header Authorization is no Basic one", "send base64 of client_id:client_secret") from None
    return {"client_id": [unquote_plus(client)], "client_secret": [unquote_plus(secret)]}


def _form(data: bytes, header: dict[str, list[str]]) -> Ask:
    try:
        fields = parse_qs(data.decode(), keep_blank_values=False, max_num_fields=30, errors="strict")
    except ValueError:
        raise Invalid("the body is no form", "send it as application/x-www-form-urlencoded") from None
    if "grant_type" not in fields:
        raise Invalid("grant_type is missing", f"send a form with grant_type, one of {', '.join(KNOWN)}")
    for name, values in header.items():
        fields.setdefault(name, []).extend(value for value in values if value not in fields[name])
    twice = [name for name, values in fields.items() if len(values) > 1]
    if twice:
        raise Invalid(f"{twice[0][:60]!r} is given twice", "send each field once")
    try:
        return Ask.model_validate({name: values[0] for name, values in fields.items()})
    except ValueError:
        raise Invalid("a field is too long, or given twice", "send client_id and client_secret as they are") from None


def _oauth_error(error: TorchyardError) -> Response:
    match error:
        case WrongSecret():
            word = "invalid_client"
        case Unauthorized():
            word = "invalid_grant"
        case Unsupported():
            word = "unsupported_grant_type"
        case TooMany():
            word = "slow_down"
        case Invalid():
            word = "invalid_request"
        case _:
            raise error
    status = 400 if word == "invalid_grant" else error.status
    headers = dict(NO_STORE)
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(error.seconds)
    if status == 401:
        headers["WWW-Authenticate"] = "Basic"
    said = {"error": word, "error_description": error.message}
    return JSONResponse(shape(error) | {"code": status} | said, status_code=status, headers=headers)
