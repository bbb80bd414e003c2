"""Make projects, list them, choose one, give them quotas. The choice is kept in the user's settings."""

import click

from torchyard.cli.output import Column, age, output_options, show_rows
from torchyard.cli.quota import COLUMNS, devices_of, new_quota_option, quota_option
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import org
from torchyard.client.config import change_config


@click.group("project", cls=Guessing)
def command() -> None:
    """Make projects, list them, choose one, give them quotas."""


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List projects; * is the one in use."""
    session = Session()
    columns = (
        Column("", lambda row: "*" if row["name"] == session.project else ""),
        Column("NAME", lambda row: row["name"]),
        *COLUMNS,
        Column("DEPARTMENT", lambda row: row["departmentName"]),
        Column("AGE", lambda row: age(row.get("createdAt"))),
        Column("ID", lambda row: str(row["id"]), wide=True),
        Column("NAMESPACE", lambda row: row["status"]["namespace"], wide=True),
        Column("DESCRIPTION", lambda row: row["description"], wide=True),
    )
    show_rows(org.projects(session.server), columns, output, name=lambda row: str(row["name"]))


@command.command("create")
@click.argument("name")
@quota_option
@click.option("--department", metavar="NAME", default="default", show_default=True, help="Whose project it is.")
@click.option("--description", metavar="TEXT", default="", help="What it is for.")
def create(name: str, quota: str, department: str, description: str) -> None:
    """Make a project."""
    session = Session()
    body = {
        "name": name,
        "clusterId": session.cluster_id,
        "parentId": org.department_id(session.server, department),
        "description": description,
        "resources": org.resources(devices_of(quota)),
    }
    org.create(session.server, "project", body)
    click.echo(f"project {name} is made; choose it with `torchyard project set {name}`")


@command.command("update")
@click.argument("name")
@new_quota_option
def update(name: str, quota: str) -> None:
    """Give a project another quota. What runs goes on, also when it holds more."""
    session = Session()
    org.set_quota(session.server, "project", org.project_id(session.server, name), devices_of(quota))
    click.echo(f"project {name} has a quota of {quota}")


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def delete(names: tuple[str, ...]) -> None:
    """Delete projects in which neither workloads nor claims are left."""
    session = Session()
    for unit_id, name in [(org.project_id(session.server, name), name) for name in dict.fromkeys(names)]:
        org.delete(session.server, "project", unit_id)
        click.echo(f"project {name} is deleted")


@command.command("set")
@click.argument("name")
def choose(name: str) -> None:
    """Use this project where no -p says otherwise."""
    session = Session(project=name)
    org.project_id(session.server, name)
    change_config(project=name)
    click.echo(f"project {name} is in use")
