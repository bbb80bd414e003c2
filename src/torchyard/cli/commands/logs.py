"""Show the log of a workload. Knows what to ask for; how lines look is the screen's."""

import click

from torchyard.cli.follow import open_screen
from torchyard.cli.output import note
from torchyard.cli.session import Session, project_option
from torchyard.client import logs
from torchyard.client.logs import LogChoice


@click.command("logs")
@click.argument("name")
@project_option
@click.option("-f", "--follow", is_flag=True, help="Go on until it is over.")
@click.option("--replica", "--pod", metavar="REPLICA", help="Only this replica: worker-0.")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Only this rank.")
@click.option("--attempt", type=click.IntRange(min=0), metavar="N", help="This attempt, else the last; 0 for all.")
@click.option("--previous", is_flag=True, help="The attempt before the last.")
@click.option("--since", "--since-time", metavar="TIME", help="Not older than 5m, 2h, or a time.")
@click.option("-t", "--tail", type=click.IntRange(min=-1), metavar="N", help="Only the last N lines.")
@click.option("--timestamps", is_flag=True, help="Begin each line with its time.")
def command(
    name: str,
    project: str | None,
    follow: bool,
    replica: str | None,
    rank: int | None,
    attempt: int | None,
    previous: bool,
    since: str | None,
    tail: int | None,
    timestamps: bool,
) -> int:
    """Show the log of a workload, all replicas and ranks together."""
    session = Session(project)
    row = session.workload(name)
    if previous:
        attempt = int(row.get("attempt") or 0) - 1
        if attempt < 1:
            raise click.UsageError(f"{name} has had no attempt before this one; leave --previous out")
    choice = LogChoice(
        attempt=attempt,
        replica=replica,
        rank=rank,
        since=since,
        tail=None if tail == -1 else tail,
        follow=follow,
    )
    replicas, devices = int(row.get("replicas") or 1), int(row.get("devices") or 0)
    one = replica is not None and devices <= replicas
    several = rank is None and not one and (replicas > 1 or devices > 1)
    screen = open_screen(apart=False, timestamps=timestamps, several=several)
    silent = True
    try:
        for event in logs.read(session.server, row["id"], choice, patience=float("inf") if follow else 10.0):
            if event.name == "line":
                silent = False
                screen.line(logs.line_of(event))
                if follow:
                    screen.flush()
    finally:
        screen.close()
    if silent and rank is not None:
        note(f"no line of rank {rank} was found in the log of {name}")
    elif silent and row["phase"] in ("Pending", "Creating", "Initializing"):
        why = f": {row['phaseMessage']}" if row.get("phaseMessage") else ""
        note(f"{name} has printed nothing yet, it is {row['phase'].lower()}{why}")
    return 0
