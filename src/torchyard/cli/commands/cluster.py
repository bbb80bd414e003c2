"""List clusters and choose one. The choice is kept in the user's settings."""

import click

from torchyard.cli.output import Column, age, output_options, show_rows
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import org
from torchyard.client.config import change_config


@click.group("cluster", cls=Guessing)
def command() -> None:
    """List clusters and choose one."""


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List clusters; * is the one in use."""
    session = Session()
    columns = (
        Column("", lambda row: "*" if row["name"] == session.cluster else ""),
        Column("NAME", lambda row: row["name"]),
        Column("ENGINE", lambda row: str(row.get("engine") or "-")),
        Column("STATE", lambda row: str((row.get("status") or {}).get("state") or "-")),
        Column("AGE", lambda row: age(row.get("createdAt"))),
        Column("ID", lambda row: row["uuid"], wide=True),
    )
    show_rows(org.clusters(session.server), columns, output, name=lambda row: str(row["name"]))


@command.command("set")
@click.argument("name")
def choose(name: str) -> None:
    """Use this cluster where no --cluster says otherwise."""
    session = Session(cluster=name)
    org.cluster_id(session.server, name)
    change_config(cluster=name)
    click.echo(f"cluster {name} is in use")
