"""Stop workloads; resume runs them again. `suspend` is the same."""

import click

from torchyard.cli.session import Session, project_option
from torchyard.client import workloads


@click.command("stop")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@project_option
@click.option("--grace", metavar="TIME", help="Time between SIGTERM and SIGKILL: 30s, 5m.")
def command(names: tuple[str, ...], project: str | None, grace: str | None) -> None:
    """Stop workloads. Their names, logs and checkpoints stay; `resume` runs them again."""
    from torchyard.domain.quantities import parse_duration

    seconds = parse_duration(grace) if grace is not None else None
    session = Session(project)
    for row in [session.workload(name) for name in names]:
        workloads.stop(session.server, row, seconds)
        click.echo(f"{row['name']} is being stopped")
