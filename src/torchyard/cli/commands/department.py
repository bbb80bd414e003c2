"""Make departments, list them, give them quotas for their projects to share."""

import click

from torchyard.cli.output import Column, age, output_options, show_rows
from torchyard.cli.quota import COLUMNS, devices_of, new_quota_option, quota_option
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import org


@click.group("department", cls=Guessing)
def command() -> None:
    """Make departments, list them, give them quotas for their projects to share."""


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List departments."""
    columns = (
        Column("NAME", lambda row: row["name"]),
        *COLUMNS,
        Column("PROJECTS", lambda row: str(row["projectsCount"])),
        Column("AGE", lambda row: age(row.get("createdAt"))),
        Column("ID", lambda row: str(row["id"]), wide=True),
        Column("DESCRIPTION", lambda row: row["description"], wide=True),
    )
    show_rows(org.departments(Session().server), columns, output, name=lambda row: str(row["name"]))


@command.command("create")
@click.argument("name")
@quota_option
@click.option("--description", metavar="TEXT", default="", help="What it is for.")
def create(name: str, quota: str, description: str) -> None:
    """Make a department."""
    session = Session()
    body = {
        "name": name,
        "clusterId": session.cluster_id,
        "description": description,
        "resources": org.resources(devices_of(quota)),
    }
    org.create(session.server, "department", body)
    click.echo(f"department {name} is made; give it projects: torchyard project create NAME --department {name}")


@command.command("update")
@click.argument("name")
@new_quota_option
def update(name: str, quota: str) -> None:
    """Give a department another quota."""
    session = Session()
    org.set_quota(session.server, "department", org.department_id(session.server, name), devices_of(quota))
    click.echo(f"department {name} has a quota of {quota}")


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def delete(names: tuple[str, ...]) -> None:
    """Delete departments that have no projects."""
    session = Session()
    for unit_id, name in [(org.department_id(session.server, name), name) for name in dict.fromkeys(names)]:
        org.delete(session.server, "department", unit_id)
        click.echo(f"department {name} is deleted")
