"""Users and their roles over the API."""

from typing import Any

from torchyard.client.http import Server, encode, quote
from torchyard.domain.errors import NotFound

_ROUTE, _RULES = "/users", "/authorization/access-rules"
_PAGE = 500

Row = dict[str, Any]


def create(server: Server, email: str) -> Row:
    """Make a user; the password to begin with is in this answer and nowhere else."""
    answer: Row = server.post(_ROUTE, {"email": email})
    return answer


def listing(server: Server, search: str | None = None) -> list[Row]:
    """All users, or those whose names hold a text."""
    rows: list[Row] = []
    while True:
        page: list[Row] = server.get(_ROUTE, search=search, offset=len(rows), limit=_PAGE)
        rows += page
        if len(page) < _PAGE:
            return rows


def find(server: Server, name: str) -> Row:
    """A user by name. Raises NotFound."""
    for row in listing(server, name):
        if row["username"] == name.lower():
            return row
    raise NotFound(f"there is no user {name[:80]!r}", "see `torchyard user list`")


def enable(server: Server, identity: str, enabled: bool) -> None:
    """Switch a user on or off; all their tokens follow at once."""
    server.send("PATCH", f"{_ROUTE}/{quote(identity)}", body=encode({"enabled": enabled}), again=True)


def reset_password(server: Server, identity: str) -> str:
    """A new password, shown once. Sessions of the user end."""
    return str(server.post(f"{_ROUTE}/{quote(identity)}/password")["password"])


def delete(server: Server, identity: str) -> None:
    """Delete a user with keys and access rules."""
    server.delete(f"{_ROUTE}/{quote(identity)}")


def rules(server: Server, identity: str | None = None) -> list[Row]:
    """Who has which role where; of all, or of one user."""
    of_one = f"subjectId=={identity}" if identity else None
    rows: list[Row] = []
    while True:
        answer = server.get(_RULES, filterBy=of_one, offset=len(rows), limit=_PAGE)
        rows += answer["accessRules"]
        if len(rows) >= answer["totalRecords"]:
            return rows


def grant(server: Server, identity: str, role: int, scope_type: str, scope_id: str) -> None:
    """Give a user a role at a scope."""
    rule = {"subjectId": identity, "subjectType": "user", "roleId": role}
    server.post(_RULES, rule | {"scopeType": scope_type, "scopeId": scope_id})


def revoke(server: Server, rule: int) -> None:
    """Take a role away; it counts from the next request on."""
    server.delete(f"{_RULES}/{rule}")
