"""Passwords of users: argon2id, in another thread since each takes its time on purpose."""

import asyncio
import secrets
from functools import cache

from torchyard.domain.errors import Invalid

SHORTEST = 10
LONGEST = 1024


def fresh() -> str:
    """A password that nobody guesses, to be changed by its user."""
    return secrets.token_urlsafe(12)


def check(text: str) -> str:
    """The password, if it is one to keep. Raises Invalid; never says what it was."""
    if not SHORTEST <= len(text) <= LONGEST:
        raise Invalid(f"a password has {SHORTEST} to {LONGEST} characters", "choose another one")
    return text


async def hashed(turn: asyncio.Semaphore, text: str) -> str:
    """What is kept of it. `turn` bounds how many are worked on at once: each takes 64 MB."""
    from argon2 import PasswordHasher

    async with turn:
        return await asyncio.to_thread(PasswordHasher().hash, text)


async def matches(turn: asyncio.Semaphore, kept: str | None, text: str) -> bool:
    """It is the one; takes as long where there is none to compare with."""
    async with turn:
        return await asyncio.to_thread(_matches, kept, text)


def _matches(kept: str | None, text: str) -> bool:
    from argon2 import PasswordHasher
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return PasswordHasher().verify(kept or _nobodys(), text) and kept is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    from argon2 import PasswordHasher

    return PasswordHasher().hash(secrets.token_urlsafe(32))
