"""Checkpoints of a workload over the API."""

import http.client
from typing import Any

from torchyard.client.http import Server, quote

Checkpoint = dict[str, Any]


def listing(server: Server, identity: str) -> list[Checkpoint]:
    """What was found, newest first."""
    found: list[Checkpoint] = server.get(f"/workloads/{quote(identity)}/checkpoints")["checkpoints"]
    return sorted(found, key=lambda each: str(each.get("modifiedAt", "")), reverse=True)


def verify(server: Server, identity: str) -> list[Checkpoint]:
    """The same, each read through and checked."""
    found: list[Checkpoint] = server.post(f"/workloads/{quote(identity)}/checkpoints/verify")["checkpoints"]
    return sorted(found, key=lambda each: str(each.get("modifiedAt", "")), reverse=True)


def open_content(server: Server, identity: str, checkpoint: Checkpoint) -> http.client.HTTPResponse:
    """A checkpoint's bytes, to be read bit by bit."""
    query = {"path": checkpoint["path"], "claim": checkpoint.get("claim")}
    return server.open("GET", f"/workloads/{quote(identity)}/checkpoints/content", query)
