"""Run stopped or failed workloads again. A new attempt, under the same name."""

import click

from torchyard.cli.session import Session, project_option
from torchyard.client import workloads


@click.command("resume")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@project_option
def command(names: tuple[str, ...], project: str | None) -> None:
    """Run stopped or failed workloads again, as a new attempt."""
    session = Session(project)
    for row in [session.workload(name) for name in names]:
        workloads.resume(session.server, row)
        click.echo(f"{row['name']} is being resumed")
