"""Open a shell inside a replica. The same as `exec -it NAME -- bash`."""

import sys

import click

from torchyard.cli.commands.exec import run_inside
from torchyard.cli.session import project_option

_SHELL = ("sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh")


@click.command("bash")
@click.argument("name")
@project_option
@click.option("--replica", "--pod", metavar="REPLICA", help="In this replica, else the first.")
def command(name: str, project: str | None, replica: str | None) -> int:
    """Open a shell inside a replica."""
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    return run_inside(name, _SHELL, project=project, replica=replica, stdin=True, tty=tty)
