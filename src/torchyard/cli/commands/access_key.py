"""Make, list, renew and delete your access keys. Scripts come in with them."""

import click

from torchyard.cli.commands.delete import ask
from torchyard.cli.output import Column, age, as_text, fields, note, output_options, show_rows, write
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import access_keys

COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("CLIENT ID", lambda row: row["clientId"]),
    Column("ENABLED", lambda row: "yes" if row["enabled"] else "no"),
    Column("LAST USED", lambda row: age(row.get("lastLogin"))),
    Column("AGE", lambda row: age(row.get("createdAt"))),
    Column("ID", lambda row: row["id"], wide=True),
)


@click.group("access-key", cls=Guessing)
def command() -> None:
    """Make, list, renew and delete your access keys."""


@command.command("create")
@click.argument("name")
@output_options
def create(name: str, output: str) -> None:
    """Make an access key. Its secret is shown this once; a key may do what you may."""
    _show(access_keys.create(Session().server, name), output)


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List your access keys, without their secrets."""
    rows = access_keys.listing(Session().server)
    show_rows(rows, COLUMNS, output, name=lambda row: str(row["name"]))
    if not rows and output in ("table", "wide"):
        note("no access keys; make one with `torchyard access-key create NAME`")


@command.command("rotate")
@click.argument("name")
@output_options
def rotate(name: str, output: str) -> None:
    """Give an access key a new secret, shown this once. The old one and its logins end."""
    server = Session().server
    found = access_keys.find(server, name)
    _show(found | {"clientSecret": access_keys.rotate(server, found["id"])}, output)


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(names: tuple[str, ...], yes: bool) -> None:
    """Delete access keys. Whoever came in with them is out at once."""
    server = Session().server
    found = [access_keys.find(server, name) for name in dict.fromkeys(names)]
    if not yes:
        ask(f"Delete {', '.join(row['name'] for row in found)}?")
    for row in found:
        access_keys.delete(server, row["id"])
        click.echo(f"{row['name']} is deleted")


def _show(row: dict[str, str], output: str) -> None:
    if output in ("json", "yaml"):
        write(as_text(row, output))
        return
    write(fields([("Name", row["name"]), ("Client ID", row["clientId"]), ("Secret", row["clientSecret"])]))
    note("the secret is shown this once; log in with `torchyard login access-key`")
