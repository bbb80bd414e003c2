"""Workloads over the API: submit, find, list, stop, resume, delete, and what is known of one."""

from collections.abc import Callable, Iterator
from typing import Any

from torchyard.client.http import Server, new_key, quote
from torchyard.client.stream import ServerEvent, events
from torchyard.domain.errors import NotFound

ROUTES = {"training": "trainings", "distributed": "distributed", "workspace": "workspaces"}

Row = dict[str, Any]


def submit(server: Server, kind: str, body: dict[str, Any]) -> Row:
    """Create a workload. Asked again by itself after a lost connection, it is still one workload."""
    answer: Row = server.post(f"/workloads/{ROUTES[kind]}", body, key=new_key())
    return answer


def page(server: Server, **query: object) -> tuple[list[Row], int | None]:
    """Rows of a page, and where the next one begins."""
    answer = server.get("/workloads", **query)
    return answer["workloads"], answer.get("next")


def find(server: Server, name: str, project: str) -> Row:
    """The workload of a name in a project, of those that are not deleted. Raises NotFound."""
    rows, _ = page(server, filterBy=f"name=={name},projectName=={project}", limit=10)
    for row in rows:
        if row["name"] == name:
            return row
    raise NotFound(f"there is no workload {name[:80]!r} in project {project}", "see `torchyard list`")


def get(server: Server, identity: str) -> Row:
    """One workload's row, with attempts, progress and reason."""
    row: Row = server.get(f"/workloads/{quote(identity)}")
    return row


def spec(server: Server, row: Row) -> Row:
    """The workload as it was submitted."""
    answer: Row = server.get(f"/workloads/{ROUTES[kind_of(row)]}/{quote(row['id'])}")
    return answer


def stop(server: Server, row: Row, grace: float | None = None) -> None:
    """Ask it to stop; the name stays. `grace`: seconds between SIGTERM and SIGKILL."""
    query = {"grace": grace}
    server.send("POST", f"/workloads/{ROUTES[kind_of(row)]}/{quote(row['id'])}/suspend", query=query, again=True)


def resume(server: Server, row: Row) -> None:
    """Ask for a new attempt."""
    server.post(f"/workloads/{ROUTES[kind_of(row)]}/{quote(row['id'])}/resume")


def delete(server: Server, row: Row) -> None:
    """Stop and delete it; the name is free again."""
    server.delete(f"/workloads/{ROUTES[kind_of(row)]}/{quote(row['id'])}")


def pods(server: Server, identity: str) -> list[Row]:
    """Its replicas as Run:ai shows pods."""
    answer: list[Row] = server.get(f"/workloads/{quote(identity)}/pods")["pods"]
    return answer


def happenings(server: Server, identity: str, limit: int = 50) -> list[Row]:
    """Its last events, oldest first."""
    answer: list[Row] = server.get(f"/workloads/{quote(identity)}/events", limit=limit)["events"]
    return answer[::-1]


def attempts(server: Server, identity: str) -> list[Row]:
    """Its attempts with replicas and ranks."""
    answer: list[Row] = server.get(f"/workloads/{quote(identity)}/attempts")["attempts"]
    return answer


def explain(server: Server, identity: str) -> Row:
    """The one reason why it is where it is."""
    answer: Row = server.get(f"/workloads/{quote(identity)}/explain")
    return answer


def changes(
    server: Server, identity: str, away: Callable[[bool], None] = lambda gone: None, patience: float = float("inf")
) -> Iterator[ServerEvent]:
    """`workload`, `event` and `progress` at each change, `end` once it is over."""
    return events(server, f"/workloads/{quote(identity)}/stream", away=away, patience=patience)


def kind_of(row: Row) -> str:
    """Its kind, in lower case as in spec files."""
    return str(row["type"]).lower()
