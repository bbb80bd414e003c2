"""Projects, clusters, nodes, who we are, and what the server says of itself."""

from typing import Any

from torchyard.client.http import Server
from torchyard.domain.errors import NotFound

Row = dict[str, Any]


def projects(server: Server) -> list[Row]:
    """All projects."""
    answer: list[Row] = server.get("/org-unit/projects")["projects"]
    return answer


def clusters(server: Server) -> list[Row]:
    """All clusters."""
    answer: list[Row] = server.get("/clusters")
    return answer


def nodes(server: Server) -> list[Row]:
    """All nodes with their devices."""
    answer: list[Row] = server.get("/nodes")["nodes"]
    return answer


def me(server: Server) -> Row:
    """Who we are to the server."""
    answer: Row = server.get("/me")
    return answer


def health(server: Server) -> Row:
    """Whether it works and which version it is."""
    answer: Row = server.get("/health")
    return answer


def page_link(server: Server) -> str:
    """A link that opens the web page once, within a minute."""
    answer: Row = server.post("/ui/code")
    return str(answer["url"])


def prune(server: Server, older_than: float | None, dry_run: bool) -> Row:
    """Remove logs, attempts and code copies of workloads that are over; `older_than` in seconds."""
    answer: Row = server.post("/prune", {"olderThan": older_than, "dryRun": dry_run})
    return answer


def project_id(server: Server, name: str) -> str:
    """The id of a project. Raises NotFound."""
    return str(_named(projects(server), name, "project")["id"])


def cluster_id(server: Server, name: str) -> str:
    """The id of a cluster. Raises NotFound."""
    return str(_named(clusters(server), name, "cluster")["uuid"])


def _named(rows: list[Row], name: str, noun: str) -> Row:
    for row in rows:
        if row["name"] == name:
            return row
    known = ", ".join(sorted(str(row["name"]) for row in rows))
    raise NotFound(f"there is no {noun} {name!r}", f"there are: {known}; see `torchyard {noun} list`")
