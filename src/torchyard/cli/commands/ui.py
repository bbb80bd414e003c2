"""Print a link to the web page that logs you in. It works once, for a minute."""

import click

from torchyard.cli.session import Session
from torchyard.client import org


@click.command("ui")
def command() -> None:
    """Print a link to the web page that logs you in. It works once, for a minute."""
    click.echo(org.page_link(Session().server))
