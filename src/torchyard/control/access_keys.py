"""Access keys: made, given a new secret, switched off, deleted. A secret is known to nobody but who was handed it."""

import hashlib
import hmac
import re
import secrets
import uuid
from dataclasses import replace

from sqlalchemy import Connection

from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Conflict, Invalid, NotFound, Problem
from torchyard.domain.user import KEY_NAME, MAX_KEYS, AccessKey, KeyKind
from torchyard.store import access_keys, audit

MAX_NAME = 63


async def create(yard: Yard, kind: KeyKind, name: str, actor: Actor) -> tuple[AccessKey, str]:
    """A key of the actor's, and its secret. Raises Invalid, Conflict (taken name, too many)."""
    if not re.fullmatch(KEY_NAME, name) or len(name) > MAX_NAME:
        what = f"{name[:63]!r} is no good name of a key"
        how = f"begin with a letter, then lower case letters, digits, - and _; 2 to {MAX_NAME} of them"
        raise Invalid(what, how, (Problem("name", "is no good name", "options"),))
    secret, moment = secrets.token_urlsafe(32), now()
    key_id = str(uuid.uuid4())
    key = AccessKey(
        id=key_id,
        client_id=f"ty-{secrets.token_hex(10)}",
        name=name,
        kind=kind,
        user_id=actor.id,
        secret=digest(yard, key_id, secret),
        created_by=actor.name,
        created_at=moment,
        updated_at=moment,
    )

    def insert(connection: Connection) -> None:
        if len(access_keys.listing(connection, kind, actor.id)) >= MAX_KEYS:
            raise Conflict(f"you have {MAX_KEYS} keys, and nobody may have more", "delete one that is not needed")
        access_keys.insert(connection, key)
        audit.append(connection, actor.name, "create", f"access-key/{name}", moment)

    await yard.writing(insert)
    return key, secret


async def listing(yard: Yard, kind: KeyKind, actor: Actor) -> tuple[AccessKey, ...]:
    """The actor's keys of a kind."""
    return await yard.reading(lambda connection: access_keys.listing(connection, kind, actor.id))


async def get(yard: Yard, kind: KeyKind, key_id: str, actor: Actor) -> AccessKey:
    """One of the actor's keys. Raises NotFound, for another user's key as well."""
    return await yard.reading(lambda connection: _own(connection, kind, key_id, actor))


async def rotate(yard: Yard, kind: KeyKind, key_id: str, actor: Actor) -> str:
    """A new secret; the old one and all tokens made with it are worth nothing from now on. Raises NotFound."""
    secret = secrets.token_urlsafe(32)

    def change(connection: Connection) -> None:
        key = _own(connection, kind, key_id, actor)
        kept = digest(yard, key.id, secret)
        access_keys.save(connection, replace(key, secret=kept, generation=key.generation + 1, updated_at=now()))
        audit.append(connection, actor.name, "rotate", f"access-key/{key.name}", now())

    await yard.writing(change)
    return secret


async def enable(yard: Yard, kind: KeyKind, key_id: str, enabled: bool, actor: Actor) -> AccessKey:
    """Switch it on or off. Raises NotFound."""

    def change(connection: Connection) -> AccessKey:
        key = replace(_own(connection, kind, key_id, actor), enabled=enabled, updated_at=now())
        access_keys.save(connection, key)
        audit.append(connection, actor.name, "enable" if enabled else "disable", f"access-key/{key.name}", now())
        return key

    return await yard.writing(change)


async def delete(yard: Yard, kind: KeyKind, key_id: str, actor: Actor) -> None:
    """Forget it; tokens made with it are worth nothing from now on. Raises NotFound."""

    def change(connection: Connection) -> None:
        key = _own(connection, kind, key_id, actor)
        access_keys.remove(connection, key.id)
        audit.append(connection, actor.name, "delete", f"access-key/{key.name}", now())

    await yard.writing(change)


def digest(yard: Yard, key_id: str, secret: str) -> str:
    """What is kept of a secret. Bound to its key: a row copied over another opens nothing."""
    return hmac.new(yard.sealer.derive("access keys"), f"{key_id} {secret}".encode(), hashlib.sha256).hexdigest()


def _own(connection: Connection, kind: KeyKind, key_id: str, actor: Actor) -> AccessKey:
    key = access_keys.fetch(connection, key_id)
    if key is None or key.kind is not kind or key.user_id != actor.id:
        raise NotFound(f"there is no key {key_id[:80]!r} of yours", "list your keys")
    return key
