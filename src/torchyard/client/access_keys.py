"""One's own access keys over the API."""

from typing import Any

from torchyard.client.http import Server, quote
from torchyard.domain.errors import NotFound

_ROUTE = "/access-keys"

Row = dict[str, Any]


def create(server: Server, name: str) -> Row:
    """Make a key; its secret is in this answer and nowhere else."""
    answer: Row = server.post(_ROUTE, {"name": name})
    return answer


def listing(server: Server) -> list[Row]:
    """All keys, without their secrets."""
    answer: list[Row] = server.get(_ROUTE)["accessKeys"]
    return answer


def find(server: Server, name: str) -> Row:
    """A key by its name or client id. Raises NotFound."""
    for row in listing(server):
        if name in (row["name"], row["clientId"]):
            return row
    raise NotFound(f"you have no access key {name[:80]!r}", "see `torchyard access-key list`")


def rotate(server: Server, identity: str) -> str:
    """A new secret; the old one and its tokens are worth nothing from now on."""
    return str(server.post(f"{_ROUTE}/{quote(identity)}/secret")["clientSecret"])


def delete(server: Server, identity: str) -> None:
    """Delete a key; its tokens are worth nothing from now on."""
    server.delete(f"{_ROUTE}/{quote(identity)}")
