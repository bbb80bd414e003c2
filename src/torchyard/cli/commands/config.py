"""Show and change your settings. They are one small file."""

import os
from dataclasses import asdict, replace

import click

from torchyard.cli.output import as_text, fields, output_options, write
from torchyard.cli.root import Guessing
from torchyard.client.config import config_file, load_config, save_config


@click.group("config", cls=Guessing)
def command() -> None:
    """Show and change your settings."""


@command.command("set")
@click.option("--cp-url", metavar="URL", help="Server to use; an empty one is this machine's own.")
def change(cp_url: str | None) -> None:
    """Choose the server. TORCHYARD_URL wins over it."""
    if cp_url is None:
        raise click.UsageError("there is nothing to set: --cp-url URL")
    url = cp_url.rstrip("/")
    if url and not url.startswith(("http://", "https://")):
        raise click.UsageError(f"{cp_url!r} is no address: write it as http://127.0.0.1:8080")
    env = {name: value for name, value in os.environ.items() if name != "TORCHYARD_URL"}
    path = save_config(replace(load_config(env), url=url or None))
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
