"""Log in to a server, with an access key or as a user. This machine's own server needs none."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from torchyard.cli.output import note
from torchyard.cli.root import Guessing
from torchyard.cli.secret import checked, read_secret
from torchyard.client import load_config, logins
from torchyard.client.config import change_config, server_url

Function = TypeVar("Function", bound=Callable[..., Any])


@click.group("login", cls=Guessing)
def command() -> None:
    """Log in to a server. This machine's own server lets its owner in without."""


def url_option(function: Function) -> Function:
    """`--url URL`."""
    return click.option(
        "--url", metavar="URL", help="Server, from now on the one in use; else that of `torchyard config set`."
    )(function)


@command.command("access-key")
@click.option("--client-id", required=True, metavar="ID", help="Client id of the access key.")
@click.option("--secret", metavar="SECRET", help="Its secret; better a file, stdin or the prompt.")
@click.option(
    "--secret-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="File with the secret."
)
@url_option
def access_key(client_id: str, secret: str | None, secret_file: Path | None, url: str | None) -> None:
    """Log in with an access key. Its secret comes from --secret-file, else from stdin or a prompt."""
    if secret is not None and secret_file is not None:
        raise click.UsageError("give --secret or --secret-file, not both")
    aim = _aim(url)
    if secret is not None:
        note("others see a --secret in the list of processes; --secret-file, stdin and the prompt hide it")
        known = checked(os.fsencode(secret), "secret", "--secret")
    elif secret_file is not None:
        known = checked(secret_file.read_bytes(), "secret", str(secret_file))
    else:
        known = read_secret("secret")
    logins.with_key(aim, client_id, known)
    _done(f"with access key {client_id}", aim, url)


command.add_command(access_key, "application")
command.add_command(access_key, "app")


@command.command("user")
@click.option("-u", "--user", "username", required=True, metavar="NAME", help="Name of the user: ann@example.com.")
@url_option
def user(username: str, url: str | None) -> None:
    """Log in as a user. The password comes from stdin or a prompt."""
    aim = _aim(url)
    logins.with_password(aim, username, read_secret("password"))
    _done(f"as {username}", aim, url)


def _aim(url: str | None) -> str:
    known = server_url(url) if url else load_config().url
    if known is None:
        raise click.UsageError(
            "this machine's own server lets you in without a login; another one is named with --url URL"
        )
    return known


def _done(how: str, aim: str, url: str | None) -> None:
    if url:
        change_config(url=aim)
    click.echo(f"logged in at {aim} {how}")
    if os.environ.get("TORCHYARD_TOKEN"):
        note("TORCHYARD_TOKEN is set and wins over this login")
    if load_config().url != aim:
        note("TORCHYARD_URL is set and wins: commands go to that server")
