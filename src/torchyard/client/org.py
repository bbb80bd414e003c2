"""Projects, departments, clusters, nodes, who we are, and what the server says of itself."""

from typing import Any, Literal

from torchyard.client.http import Server, encode
from torchyard.domain.errors import NotFound

Row = dict[str, Any]
Unit = Literal["project", "department"]
PAGE = 500


def projects(server: Server) -> list[Row]:
    """All projects."""
    return _units(server, "project")


def departments(server: Server) -> list[Row]:
    """All departments."""
    return _units(server, "department")


def create(server: Server, unit: Unit, body: Row) -> Row:
    """Make a project or department."""
    answer: Row = server.post(f"/org-unit/{unit}s", body)
    return answer


def set_quota(server: Server, unit: Unit, unit_id: str, quota: int | None) -> None:
    """Another quota of devices; None: no bound."""
    server.send("PUT", f"/org-unit/{unit}s/{unit_id}/resources", body=encode(resources(quota)), again=True)


def delete(server: Server, unit: Unit, unit_id: str) -> None:
    """Delete a project or department in which nothing is left."""
    server.delete(f"/org-unit/{unit}s/{unit_id}")


def resources(quota: int | None) -> list[Row]:
    """A quota of devices as the API takes it."""
    return [{"nodePool": {"id": "1", "name": "default"}, "gpu": {"deserved": quota}}]


def clusters(server: Server) -> list[Row]:
    """All clusters."""
    answer: list[Row] = server.get("/clusters")
    return answer


def nodes(server: Server) -> list[Row]:
    """All nodes with their devices."""
    answer: list[Row] = server.get("/nodes")["nodes"]
    return answer


def node_pools(server: Server) -> list[Row]:
    """All node pools."""
    answer: list[Row] = server.get("/node-pools")["nodepools"]
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


def department_id(server: Server, name: str) -> str:
    """The id of a department. Raises NotFound."""
    return str(_named(departments(server), name, "department")["id"])


def cluster_id(server: Server, name: str) -> str:
    """The id of a cluster. Raises NotFound."""
    return str(_named(clusters(server), name, "cluster")["uuid"])


def _units(server: Server, unit: Unit) -> list[Row]:
    rows: list[Row] = []
    offset: int | None = 0
    while offset is not None:
        page = server.get(f"/org-unit/{unit}s", limit=PAGE, offset=offset)
        rows += page[f"{unit}s"]
        offset = page["next"]
    return rows


def _named(rows: list[Row], name: str, noun: str) -> Row:
    for row in rows:
        if row["name"] == name:
            return row
    known = ", ".join(sorted(str(row["name"]) for row in rows))
    raise NotFound(f"there is no {noun} {name!r}", f"there are: {known}; see `torchyard {noun} list`")
