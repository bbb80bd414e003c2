"""Print the token that lets you in, for scripts of your own. It is as good as a password."""

import click

from torchyard.cli.root import Guessing
from torchyard.cli.session import Session


@click.group("auth", cls=Guessing)
def command() -> None:
    """Print the token that lets you in."""


@command.command("get-token")
def get_token() -> None:
    """Print the access token for the server in use; renewed first where it is about to run out."""
    click.echo(Session().server.address.token)
