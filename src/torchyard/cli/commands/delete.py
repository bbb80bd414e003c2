"""Delete workloads with their logs. Claims stay."""

import sys

import click

from torchyard.cli.output import plural
from torchyard.cli.session import Session, project_option
from torchyard.client import workloads

_RUNS = ("Initializing", "Running", "Resuming", "Degraded", "Updating", "Unknown")


@click.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@project_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(names: tuple[str, ...], project: str | None, yes: bool) -> None:
    """Stop and delete workloads with their logs. Claims and what is in them stay; the names are free again."""
    session = Session(project)
    rows = [session.workload(name) for name in dict.fromkeys(names)]
    if not yes:
        running = ", ".join(row["name"] for row in rows if row["phase"] in _RUNS)
        warning = f"{running} runs and will be stopped. " if running else ""
        ask(f"{warning}Delete {', '.join(row['name'] for row in rows)} with {plural(len(rows), 'log')}?")
    for row in rows:
        workloads.delete(session.server, row)
        click.echo(f"{row['name']} is being deleted")


def ask(question: str) -> None:
    """Go on only if the user says yes. Where nobody can be asked, -y must have said it."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody is here to say yes: add -y")
    click.confirm(question, abort=True, err=True)
