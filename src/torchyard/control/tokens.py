"""Tokens: short-lived JWTs for a key or a password, and who a token speaks for. Knows no HTTP.

A payload holds ids and numbers only, so that its base64 has neither `-` nor `_`: clients decode it with the
standard alphabet.
"""

import hmac
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from torchyard.control import access_keys as keys
from torchyard.control import passwords
from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import TooMany, Unauthorized, Unavailable
from torchyard.domain.user import AccessKey, User
from torchyard.store import access_keys, users

SECONDS = 3600
REFRESH_SECONDS = 12 * 3600
AUDIENCE = "torchyard"
REFRESH = "torchyard refresh"
ALGORITHM = "HS256"


class WrongSecret(Unauthorized):
    """Client or secret: which of the two is wrong is not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What a client goes away with."""

    access: str
    refresh: str
    seconds: int = SECONDS


async def for_key(yard: Yard, client_id: str, secret: str) -> Issued:
    """Tokens for a client id and its secret. Raises WrongSecret, TooMany."""
    _patience(yard, client_id)
    key, user = await yard.reading(lambda connection: _key_of(connection, client_id))
    # The same work for a client that there is not.
    given = keys.digest(yard, key.id if key else str(uuid.UUID(int=0)), secret)
    right = hmac.compare_digest(given, key.secret if key else "0" * len(given))
    if not right or key is None or user is None or not (key.enabled and user.enabled):
        yard.throttle.wrong(client_id, time.monotonic())
        raise WrongSecret("the client id or the secret is wrong", "make a key, or give this one a new secret")
    yard.throttle.right(client_id)

    def note(connection: Connection) -> None:
        access_keys.used(connection, key.id, now())
        users.logged_in(connection, user.id, now())

    await _note(yard, note)
    return _issue(yard, user, key)


async def for_password(yard: Yard, username: str, password: str) -> Issued:
    """Tokens for a user. Raises Unauthorized, TooMany."""
    name = username.lower()
    _patience(yard, name)
    # Counted before it is known to be wrong: who tries a hundred at once has no more tries for it.
    yard.throttle.wrong(name, time.monotonic())
    user = await yard.reading(lambda connection: users.named(connection, name))
    right = await passwords.matches(yard.hashing, user.password if user else None, password)
    if not right or user is None or not user.enabled:
        raise Unauthorized("the username or the password is wrong", "an administrator can give you a new password")
    yard.throttle.right(name)
    await _note(yard, lambda connection: users.logged_in(connection, user.id, now()))
    return _issue(yard, user, None)


async def for_refresh(yard: Yard, token: str) -> Issued:
    """A new access token. The refresh token stays what it was: it is not prolonged. Raises Unauthorized."""
    user, key = await _speaks_for(yard, token, REFRESH)
    return Issued(access=_sign(yard, _claims(user, key, AUDIENCE, SECONDS)), refresh=token)


async def recognise(yard: Yard, token: str) -> Actor:
    """Who sent this access token. Raises Unauthorized with one sentence."""
    user, _ = await _speaks_for(yard, token, AUDIENCE)
    return actor_of(user)


async def _note(yard: Yard, act: Callable[[Connection], None]) -> None:
    # On a full disk people must still come in, to make room.
    with suppress(Unavailable):
        await yard.writing(act)


def actor_of(user: User) -> Actor:
    """The user as the one who asks."""
    return Actor(user.username, user.id, user.owner)


def _patience(yard: Yard, client: str) -> None:
    seconds = yard.throttle.wait(client, time.monotonic())
    if seconds:
        raise TooMany("too many wrong secrets", f"try again in {seconds} s", seconds)


def _key_of(connection: Connection, client_id: str) -> tuple[AccessKey | None, User | None]:
    key = access_keys.of_client(connection, client_id)
    # Looked up for nobody as well: that takes as long.
    return key, users.fetch(connection, key.user_id if key else "")


def _issue(yard: Yard, user: User, key: AccessKey | None) -> Issued:
    return Issued(
        access=_sign(yard, _claims(user, key, AUDIENCE, SECONDS)),
        refresh=_sign(yard, _claims(user, key, REFRESH, REFRESH_SECONDS)),
    )


def _claims(user: User, key: AccessKey | None, audience: str, seconds: int) -> dict[str, Any]:
    at = int(time.time())
    # Log-out and a new password end sessions; a key lives by its own secret.
    generation = user.generation if key is None else key.generation
    claims = {"aud": audience, "sub": user.id, "gen": generation, "iat": at, "exp": at + seconds}
    return claims | {"jti": uuid.uuid4().hex} | ({"key": key.id} if key else {})


def _sign(yard: Yard, claims: dict[str, Any]) -> str:
    import jwt

    token = jwt.encode(claims, yard.sealer.derive("tokens"), algorithm=ALGORITHM)
    assert not set("-_") & set(token.split(".")[1])
    return token


async def _speaks_for(yard: Yard, token: str, audience: str) -> tuple[User, AccessKey | None]:
    claims = _verify(yard, token, audience)
    key_id = claims.get("key")

    def fetch(connection: Connection) -> tuple[User | None, AccessKey | None]:
        user = users.fetch(connection, str(claims["sub"]))
        return user, access_keys.fetch(connection, str(key_id)) if key_id is not None else None

    user, key = await yard.reading(fetch)
    if user is None or not user.enabled:
        raise Unauthorized("the user of this token was deleted or switched off", "ask an administrator")
    if key_id is None:
        if claims.get("gen") != user.generation:
            raise Unauthorized("this session was ended", "log in again")
    elif key is None or not key.enabled or key.user_id != user.id or claims.get("gen") != key.generation:
        raise Unauthorized(
            "the access key of this token was deleted, switched off or given a new secret",
            "ask for a token with the secret of now",
        )
    return user, key


def _verify(yard: Yard, token: str, audience: str) -> dict[str, Any]:
    import jwt

    try:
        return jwt.decode(
            token,
            yard.sealer.derive("tokens"),
            algorithms=[ALGORITHM],
            audience=audience,
            options={"require": ["exp", "iat", "aud", "sub"]},
        )
    except jwt.ExpiredSignatureError:
        raise Unauthorized("the token has expired", "ask for a new one at /api/v1/token") from None
    except jwt.InvalidAudienceError:
        raise Unauthorized("this token is not for this use", "send the access token, not another one") from None
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise Unauthorized("the token was not made by this server", "ask for one at /api/v1/token") from None
