"""Users: made with a password to be changed, switched off, deleted. The owner of the server is always there."""

import re
import uuid
from dataclasses import replace

from sqlalchemy import Connection

from torchyard.control import passwords
from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Conflict, Invalid, NotFound, Problem
from torchyard.domain.user import User
from torchyard.store import audit, users

MAX_NAME = 255


async def create(yard: Yard, username: str, actor: Actor) -> tuple[User, str]:
    """A user and the password to begin with. Raises Invalid, Conflict (taken name)."""
    if not re.fullmatch(r"[^\s\x00-\x1f\x7f/\\]+", username) or len(username) > MAX_NAME:
        what = "the email is no good name of a user"
        raise Invalid(what, "send an address such as ann@example.com", (Problem("email", what),))
    password, moment = passwords.fresh(), now()
    user = User(
        id=str(uuid.uuid4()),
        username=username.lower(),
        created_at=moment,
        updated_at=moment,
        created_by=actor.name,
        password=await passwords.hashed(yard.hashing, password),
        temporary=True,
    )

    def insert(connection: Connection) -> None:
        if users.named(connection, user.username) is not None:
            raise Conflict(f"there is a user {user.username} already", "choose another address")
        users.insert(connection, user)
        audit.append(connection, actor.name, "create", f"user/{user.username}", moment)

    await yard.writing(insert)
    return user, password


async def listing(yard: Yard) -> tuple[User, ...]:
    """All users."""
    return await yard.reading(users.listing)


async def get(yard: Yard, user_id: str) -> User:
    """One user. Raises NotFound."""
    return await yard.reading(lambda connection: _there(connection, user_id))


async def reset(yard: Yard, user_id: str, actor: Actor) -> str:
    """A new password to begin with; whoever came in with the old one is out. Raises NotFound."""
    password = passwords.fresh()
    kept = await passwords.hashed(yard.hashing, password)
    await yard.writing(lambda c: _keep(c, _not_owner(_there(c, user_id), "has no password"), kept, True, actor))
    return password


async def change_password(yard: Yard, actor: Actor, current: str, wanted: str) -> None:
    """The actor's own. Raises Invalid when the current one is wrong or the new one no good."""
    user = await get(yard, actor.id)
    if not await passwords.matches(yard.hashing, user.password, current):
        raise Invalid("the current password is wrong", "an administrator can give you a new one")
    kept = await passwords.hashed(yard.hashing, passwords.check(wanted))
    await yard.writing(lambda connection: _keep(connection, _there(connection, actor.id), kept, False, actor))


async def enable(yard: Yard, user_id: str, enabled: bool, actor: Actor) -> User:
    """Let a user in, or out together with all their keys. Raises NotFound, Conflict (the owner)."""

    def change(connection: Connection) -> User:
        user = _not_owner(_there(connection, user_id), "cannot be switched off")
        changed = replace(user, enabled=enabled, generation=user.generation + 1, updated_at=now())
        users.save(connection, changed)
        audit.append(connection, actor.name, "enable" if enabled else "disable", f"user/{user.username}", now())
        return changed

    return await yard.writing(change)


async def log_out(yard: Yard, user_id: str, actor: Actor) -> None:
    """End all sessions of a user; tokens of their keys stay. Raises NotFound."""

    def change(connection: Connection) -> None:
        user = _there(connection, user_id)
        users.save(connection, replace(user, generation=user.generation + 1))
        audit.append(connection, actor.name, "logout", f"user/{user.username}", now())

    await yard.writing(change)


async def delete(yard: Yard, user_id: str, actor: Actor) -> None:
    """Forget a user with keys and rules; workloads stay. Raises NotFound, Conflict (the owner)."""

    def change(connection: Connection) -> None:
        user = _not_owner(_there(connection, user_id), "cannot be deleted")
        users.remove(connection, user.id)
        audit.append(connection, actor.name, "delete", f"user/{user.username}", now())

    await yard.writing(change)


def _there(connection: Connection, user_id: str) -> User:
    user = users.fetch(connection, user_id)
    if user is None:
        raise NotFound(f"there is no user {user_id[:80]!r}", "list the users")
    return user


def _not_owner(user: User, what: str) -> User:
    if user.owner:
        raise Conflict(f"{user.username} owns this server and {what}", "who may read its data folder is the owner")
    return user


def _keep(connection: Connection, user: User, password: str, temporary: bool, actor: Actor) -> None:
    changed = replace(user, password=password, temporary=temporary, generation=user.generation + 1, updated_at=now())
    users.save(connection, changed)
    audit.append(connection, actor.name, "password", f"user/{user.username}", now())
