"""Say who you are to the server. Knows nothing else of users."""

import click

from torchyard.cli.output import as_text, fields, output_options, write
from torchyard.cli.session import Session
from torchyard.client import org


@click.command("whoami")
@output_options
def command(output: str) -> None:
    """Say who you are to which server and by what, and which project and cluster are in use."""
    session = Session()
    me = org.me(session.server)
    address = session.server.address
    where = {"server": address.url, "by": address.by, "project": session.project, "cluster": session.cluster}
    if output in ("json", "yaml"):
        write(as_text(me | where, output))
    elif output == "name":
        write(f"{me['username']}\n")
    else:
        write(fields([("User", me["username"]), *((name.capitalize(), value) for name, value in where.items())]))
