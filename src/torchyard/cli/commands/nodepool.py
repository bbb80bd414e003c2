"""List node pools: groups of machines and the GPUs they count. Knows columns only."""

import click

from torchyard.cli.output import Column, output_options, show_rows
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import org

COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("PHASE", lambda row: str(row.get("phase") or "-")),
    Column("CLUSTER", lambda row: str(row.get("clusterName") or "-")),
    Column("RESOURCE", lambda row: str(row.get("gpuResource") or "-")),
    Column("NODES", lambda row: str(len(row.get("status", {}).get("nodes") or ()) or "-")),
    Column("DEFAULT", lambda row: "yes" if row.get("isDefault") else "-"),
    Column("ID", lambda row: str(row["id"]), wide=True),
)


@click.group("nodepool", cls=Guessing)
def command() -> None:
    """List node pools."""


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List node pools."""
    show_rows(org.node_pools(Session().server), COLUMNS, output, name=lambda row: str(row["name"]))
