"""Log out of a server: its tokens on this machine are forgotten."""

import click

from torchyard.client import load_config, logins
from torchyard.client.config import server_url


@click.command("logout")
@click.option("--url", metavar="URL", help="Server; else the one in use.")
def command(url: str | None) -> None:
    """Forget the tokens of a server on this machine."""
    aim = server_url(url) if url else load_config().url
    if aim is not None and logins.forget(aim):
        click.echo(f"logged out of {aim}")
    else:
        click.echo("you were not logged in" + (f" at {aim}" if aim else ""))
