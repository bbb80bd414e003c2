"""List projects and choose one. The choice is kept in the user's settings."""

from dataclasses import replace

import click

from torchyard.cli.output import Column, age, output_options, show_rows
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import org
from torchyard.client.config import save_config


@click.group("project", cls=Guessing)
def command() -> None:
    """List projects and choose one."""


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List projects; * is the one in use."""
    session = Session()
    columns = (
        Column("", lambda row: "*" if row["name"] == session.project else ""),
        Column("NAME", lambda row: row["name"]),
        Column("AGE", lambda row: age(row.get("createdAt"))),
        Column("ID", lambda row: str(row["id"]), wide=True),
    )
    show_rows(org.projects(session.server), columns, output, name=lambda row: str(row["name"]))


@command.command("set")
@click.argument("name")
def choose(name: str) -> None:
    """Use this project where no -p says otherwise."""
    session = Session(project=name)
    org.project_id(session.server, name)
    save_config(replace(session.config, project=name))
    click.echo(f"project {name} is in use")
