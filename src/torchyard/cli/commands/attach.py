"""Follow a workload as `run` does. Its log from now on, its progress, its exit code."""

import click

from torchyard.cli.follow import follow, open_screen
from torchyard.cli.session import Session, project_option


@click.command("attach")
@click.argument("name")
@project_option
def command(name: str, project: str | None) -> int:
    """Follow a workload as `run` does: its log, its progress, and in the end its exit code.

    Ctrl-C detaches and leaves it running; pressed twice within 3 s it stops the workload.
    """
    session = Session(project)
    row = session.workload(name)
    several = int(row.get("replicas") or 1) > 1 or int(row.get("devices") or 0) > 1
    return follow(session, row, open_screen(several=several))
