"""List, verify and download the checkpoints of a workload. Knows files here; what a checkpoint is, the server knows."""

from pathlib import Path

import click

from torchyard.cli.meter import copied
from torchyard.cli.output import Column, Row, age, note, output_options, show_rows
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session, project_option
from torchyard.cli.transfer import download_folder
from torchyard.client import checkpoints, claims
from torchyard.domain.errors import Conflict, Invalid, NotFound
from torchyard.domain.quantities import show_size


def _state(row: Row) -> str:
    return "complete" if row["complete"] else f"broken: {row.get('problem') or '?'}"


def path_of(row: Row) -> str:
    """`checkpoints:/snapshot.pt` on a claim; a path of this machine in the working folder."""
    place, path = str(row.get("claim") or ""), str(row["path"]).lstrip("/")
    return f"{place.rstrip('/')}/{path}" if place.startswith("/") or not place else f"{place}:/{path}"


COLUMNS = (
    Column("CHECKPOINT", path_of),
    Column("SIZE", lambda row: show_size(row["size"])),
    Column("AGE", lambda row: age(row.get("modifiedAt"))),
    Column("FORMAT", lambda row: str(row.get("format") or "-")),
    Column("ATTEMPT", lambda row: str(row.get("attempt") or "-")),
    Column("STATE", _state),
)


@click.group("checkpoint", cls=Guessing)
def command() -> None:
    """List, verify and download the checkpoints of a workload."""


@command.command("list")
@click.argument("name")
@project_option
@output_options
def listing(name: str, project: str | None, output: str) -> None:
    """List checkpoints, the newest first."""
    session = Session(project)
    found = checkpoints.listing(session.server, session.workload(name)["id"])
    show_rows(found, COLUMNS, output, name=path_of)
    if not found and output in ("table", "wide"):
        note(f"no checkpoints of {name} yet")


@command.command("verify")
@click.argument("name")
@click.argument("file", required=False)
@project_option
@output_options
def verify(name: str, file: str | None, project: str | None, output: str) -> int:
    """Read checkpoints through and check them: FILE, else all. Exit code 1 when one is broken or there is none."""
    session = Session(project)
    found = checkpoints.verify(session.server, session.workload(name)["id"])
    if file is not None:
        found = [choose(name, found, file)]
    show_rows(found, COLUMNS, output, name=path_of)
    if not found:
        note(f"no checkpoints of {name}")
    return 0 if found and all(row["complete"] for row in found) else 1


@command.command("download")
@click.argument("name")
@click.argument("file", required=False)
@project_option
@click.option("-o", "--output", "output", metavar="PATH", help="File or folder to write to, else this folder.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def download(name: str, file: str | None, project: str | None, output: str | None, force: bool) -> None:
    """Download a checkpoint: the one that FILE names, else the newest complete one."""
    session = Session(project)
    row = session.workload(name)
    chosen = choose(name, checkpoints.listing(session.server, row["id"]), file)
    aim = Path(output or ".")
    if aim.is_dir() or (output or "").endswith("/"):
        aim = aim / Path(chosen["path"]).name
    elif not aim.parent.is_dir():
        raise Invalid(f"there is no folder {aim.parent}", f"make it first, or end -o with a slash: -o {aim.parent}/")
    if aim.exists() and not force:
        raise Conflict(f"{aim} is there already", "choose another with -o PATH, or write over it with --force")
    if chosen.get("attempt") is None:
        note(f"warning: {path_of(chosen)} was written while {name} did not run: another workload may have made it")
    size = _bring(session, row, chosen, aim)
    if not chosen["complete"]:
        note(f"warning: {path_of(chosen)} is {_state(chosen)}")
    click.echo(f"{aim}  {show_size(size)}")


def _bring(session: Session, row: Row, chosen: Row, aim: Path) -> int:
    if chosen["format"] != "dcp":
        with checkpoints.open_content(session.server, row["id"], chosen) as response:
            copied(response, aim, int(chosen["size"]))
        return aim.stat().st_size
    # A folder of many files. In the working folder there is nothing to download: it is on this machine.
    if str(chosen["claim"]).startswith("/"):
        raise Conflict(f"{path_of(chosen)} is a folder on this machine", "copy it with cp -r")
    claim = claims.find(session.server, chosen["claim"], session.project_id)
    return download_folder(session.server, claim["meta"]["id"], chosen["path"], aim)


def choose(name: str, found: list[Row], file: str | None) -> Row:
    """The checkpoint that is meant. Raises NotFound with those that there are."""
    if file is None:
        complete = [row for row in found if row["complete"]]
        if complete:
            # Its own before one that another workload has written to the claim.
            return next((row for row in complete if row.get("attempt") is not None), complete[0])
        raise NotFound(f"{name} has no complete checkpoint", f"see `torchyard checkpoint list {name}`")
    for row in found:
        if file in (path_of(row), row["path"], str(row["path"]).lstrip("/"), Path(row["path"]).name):
            return row
    there = ", ".join(dict.fromkeys(path_of(row) for row in found)) or "none"
    raise NotFound(f"{name} has no checkpoint {file!r}", f"there are: {there}")
