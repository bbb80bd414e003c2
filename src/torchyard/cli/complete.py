"""What the shell offers after TAB: commands and flags by click, names by asking a server that runs already."""

import os
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem, get_completion_class

from torchyard.cli.main import COMPLETING
from torchyard.client import Server, access_keys, claims, load_config, org, users
from torchyard.client.local import connect, running, settings_of
from torchyard.domain.errors import TorchyardError

SECONDS = 2.0
"""How long a keystroke may wait for a server."""
PAGE = 500

Names = Callable[[Server, click.Context], list[str]]


def _project(ctx: click.Context) -> str:
    return str(ctx.params.get("project") or load_config().project)


def _workloads(server: Server, ctx: click.Context) -> list[str]:
    rows = server.get(
        "/workloads", filterBy=f"projectName=={_project(ctx)}", limit=PAGE, sortBy="createdAt", sortOrder="desc"
    )
    return [row["name"] for row in rows["workloads"]]


def _claims(server: Server, ctx: click.Context) -> list[str]:
    return [row["meta"]["name"] for row in claims.listing(server, org.project_id(server, _project(ctx)))]


def _named(rows: Callable[[Server], list[dict[str, object]]], field: str = "name") -> Names:
    return lambda server, _: [str(row[field]) for row in rows(server)]


PLACES: dict[str, Names] = {
    "project": _named(org.projects),
    "department": _named(org.departments),
    "cluster": _named(org.clusters),
    "access-key": _named(access_keys.listing),
    "user": _named(users.listing, "username"),
    "pvc": _claims,
}
"""Groups whose names are not those of workloads."""
MAKERS = ("create", "submit")
"""Their name is a new one."""


def teach(command: click.Command, path: tuple[str, ...]) -> None:
    """Let every name of a command, and of those below it, be completed."""
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            teach(each, (*path, name))
        return
    for param in command.params:
        names = _names_for(param, path)
        if names is not None:
            param.type = Name(names)
        elif isinstance(param, click.Argument) and param.name == "words" and path == ("run",):
            param.type = click.Path()


class Name(click.ParamType[str]):
    """A name that the server knows."""

    name = "text"

    def __init__(self, names: Names) -> None:
        self.names = names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names that begin so; none where no server can be asked."""
        try:
            return [CompletionItem(name) for name in _ask(self.names, ctx) if name.startswith(incomplete)]
        except TorchyardError:
            return []


def script(root: click.Command, shell: str) -> str:
    """What a shell runs once so that it asks us after TAB."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(root, {}, "torchyard", COMPLETING).source()


def _names_for(param: click.Parameter, path: tuple[str, ...]) -> Names | None:
    if isinstance(param, click.Option):
        return PLACES.get(param.name or "") if param.name in ("project", "cluster") else None
    if param.name not in ("name", "names") or path[-1] in MAKERS:
        return None
    return PLACES.get(path[0], _workloads)


def _ask(names: Names, ctx: click.Context) -> list[str]:
    config = load_config()
    if not config.url and running(settings_of(os.environ).data) is None:
        # A keystroke starts no server.
        return []
    with connect(config=config, start=False) as server:
        server.patience = SECONDS
        return names(server, ctx)
