"""Wait until a workload is over and exit as it exited. Shows no log."""

import click

from torchyard.cli.follow import follow, open_screen
from torchyard.cli.session import Session, project_option


@click.command("wait")
@click.argument("name")
@project_option
def command(name: str, project: str | None) -> int:
    """Wait until a workload is over and exit as it exited.

    Exit code: that of the training; 128+n for signal n, 130 when stopped or given up, 125 for torchyard's own errors.
    """
    session = Session(project)
    return follow(session, session.workload(name), open_screen(), log=False, stops=False)
