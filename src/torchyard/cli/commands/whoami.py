"""Say who you are to the server. Knows nothing else of users."""

import click

from torchyard.cli.output import as_text, fields, output_options, write
from torchyard.cli.session import Session
from torchyard.client import org


@click.command("whoami")
@output_options
def command(output: str) -> None:
    """Say who you are to the server, and which server, project and cluster are in use."""
    session = Session()
    me = org.me(session.server)
    if output in ("json", "yaml"):
        write(as_text(me, output))
    elif output == "name":
        write(f"{me['username']}\n")
    else:
        write(
            fields(
                [
                    ("User", me["username"]),
                    ("Server", session.server.address.url),
                    ("Project", session.project),
                    ("Cluster", session.cluster),
                ]
            )
        )
