"""Say what is installed. Asks no server."""

import click

from torchyard import __version__


@click.command("version")
def command() -> None:
    """Say what is installed."""
    click.echo(f"torchyard {__version__}")
