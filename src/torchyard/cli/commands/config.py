"""Show and change your settings. They are one small file."""

import os
from dataclasses import asdict

import click

from torchyard.cli.output import as_text, fields, output_options, write
from torchyard.cli.root import Guessing
from torchyard.client.config import change_config, config_file, load_config, server_url


@click.group("config", cls=Guessing)
def command() -> None:
    """Show and change your settings."""


@command.command("set")
@click.option("--cp-url", metavar="URL", help="Server to use; an empty one is this machine's own.")
def change(cp_url: str | None) -> None:
    """Choose the server. TORCHYARD_URL wins over it."""
    if cp_url is None:
        raise click.UsageError("there is nothing to set: --cp-url URL")
    path = change_config(url=server_url(cp_url) if cp_url else None)
    click.echo(f"written to {path}")


@command.command("describe")
@output_options
def describe(output: str) -> None:
    """Show your settings."""
    known = asdict(load_config()) | {"file": str(config_file(os.environ))}
    if output in ("json", "yaml"):
        write(as_text(known, output))
        return
    pairs = [(name.capitalize(), str(value)) for name, value in known.items() if value is not None]
    write(fields(pairs if known["url"] else [("Url", "this machine's own server, started on first use"), *pairs]))
