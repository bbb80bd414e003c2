"""List machines, their devices and who holds them. Knows columns only."""

from collections import defaultdict

import click

from torchyard.cli.output import Column, Row, age, output_options, show_rows
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import org
from torchyard.domain.quantities import show_size


def _kind(row: Row) -> str:
    return str(row["gpuInfo"].get("gpuType") or "cpu slot")


def _holders(row: Row) -> str:
    held: dict[tuple[str, str], list[str]] = defaultdict(list)
    for device in row["devices"]:
        if not device["free"]:
            who = device.get("workload") or device.get("heldBy") or "?"
            held[who, age(device.get("heldSince"))].append(str(device["index"]))
    return "; ".join(f"{who} has {', '.join(numbers)} for {since}" for (who, since), numbers in held.items()) or "-"


COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("STATUS", lambda row: str(row.get("status") or "-")),
    Column("DEVICES", lambda row: f"{len(row['devices'])} x {_kind(row)}"),
    Column("FREE", lambda row: str(sum(bool(device["free"]) for device in row["devices"]))),
    Column("CORES", lambda row: str(row.get("cpuCores") or "-")),
    Column("MEMORY", lambda row: show_size(row["memory"]) if row.get("memory") else "-"),
    Column("HELD BY", _holders),
)


@click.group("node", cls=Guessing)
def command() -> None:
    """List machines, their devices and who holds them."""


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List machines, their devices and who holds them."""
    show_rows(org.nodes(Session().server), COLUMNS, output, name=lambda row: str(row["name"]))
