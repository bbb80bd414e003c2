"""Claims (pvc) and the files in them over the API."""

import http.client
from collections.abc import Iterable
from typing import Any

from torchyard.client.http import Server, quote
from torchyard.domain.errors import NotFound

_ROUTE = "/asset/datasource/pvc"

Entry = dict[str, Any]


def create(server: Server, name: str, project_id: str, cluster_id: str, spec: dict[str, Any]) -> Entry:
    """Create a claim of a project. `spec` in the words of the asset API."""
    meta = {"name": name, "scope": "project", "projectId": int(project_id), "clusterId": cluster_id}
    answer: Entry = server.post(_ROUTE, {"meta": meta, "spec": spec})
    return answer


def listing(server: Server, project_id: str) -> list[Entry]:
    """The claims of a project, with who uses them."""
    answer: list[Entry] = server.get(_ROUTE, projectId=project_id, usageInfo=True)["entries"]
    return answer


def find(server: Server, name: str, project_id: str) -> Entry:
    """A claim by its name or claim name. Raises NotFound."""
    entries = listing(server, project_id)
    for entry in entries:
        if name in (entry["meta"]["name"], entry["spec"].get("claimName")):
            return entry
    known = ", ".join(sorted(entry["meta"]["name"] for entry in entries))
    raise NotFound(
        f"there is no claim {name!r}",
        f"there are: {known}" if known else f"create it: torchyard pvc create {name} --size 10G --path /{name}",
    )


def delete(server: Server, identity: str) -> None:
    """Delete a claim and what is in it. Raises InUse while a workload uses it."""
    server.delete(f"{_ROUTE}/{quote(identity)}")


def files(server: Server, identity: str, path: str) -> list[Entry]:
    """What a folder of a claim holds (a file: itself)."""
    answer: list[Entry] = server.get(f"{_ROUTE}/{quote(identity)}/files", path=path)["entries"]
    return answer


def open_file(server: Server, identity: str, path: str) -> http.client.HTTPResponse:
    """A file's content, to be read bit by bit."""
    return server.open("GET", f"{_ROUTE}/{quote(identity)}/files/content", {"path": path})


def write_file(server: Server, identity: str, path: str, pieces: Iterable[bytes], size: int) -> None:
    """Write a file whole or not at all; its folders are made."""
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    route = f"{_ROUTE}/{quote(identity)}/files/content"
    server.send("PUT", route, query={"path": path}, body=pieces, headers=headers, again=False)


def remove_file(server: Server, identity: str, path: str) -> None:
    """Remove a file or a folder with all that is in it."""
    server.delete(f"{_ROUTE}/{quote(identity)}/files/content", path=path)
