"""Who may come in: users, and the keys that act for them. Secrets are here only as what they were turned into."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

KEY_NAME = r"^[a-z][-_a-z0-9]*[a-z0-9]$"
MAX_KEYS = 20
"""Keys that one user may have of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person. The owner is the OS user whose server this is: there from the first start, without a password."""

    id: str
    username: str
    created_at: datetime
    updated_at: datetime
    created_by: str
    owner: bool = False
    enabled: bool = True
    password: str | None = None
    """Argon2id's own text; None: nobody comes in by password."""
    temporary: bool = False
    """The password was made by somebody else."""
    generation: int = 0
    """Tokens of an earlier one are worth nothing."""
    last_login: datetime | None = None


class KeyKind(StrEnum):
    """What a key was made as. Both act as the user who made them."""

    ACCESS_KEY = "accessKey"
    SERVICE_ACCOUNT = "serviceAccount"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """A client id, and what its secret was turned into."""

    id: str
    client_id: str
    name: str
    kind: KeyKind
    user_id: str
    secret: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    enabled: bool = True
    generation: int = 0
    """Counts secrets: tokens of an earlier one are worth nothing."""
    last_used: datetime | None = None
