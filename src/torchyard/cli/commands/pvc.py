"""Make claims, list them, and copy files to and from them. Paths in a claim are written CLAIM:/PATH."""

import os
import posixpath
import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import click

from torchyard.cli.commands.delete import ask
from torchyard.cli.meter import metered, pieces_of
from torchyard.cli.output import Column, Row, age, as_text, note, output_options, plural, show_rows, write
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session, project_option
from torchyard.cli.transfer import all_files, download
from torchyard.client import claims
from torchyard.domain.errors import Conflict, Invalid, NotFound
from torchyard.domain.quantities import parse_size, show_size

_PLACE = re.compile(r"([a-z][-a-z0-9]*):(.*)", re.DOTALL)
_MODES = {"RWO": "readWriteOnce", "ROX": "readOnlyMany", "RWX": "readWriteMany"}
_MODE_NAMES = {field: name for name, field in _MODES.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """A path in a claim, without slashes at its ends; `inside`: written with a slash at its end."""

    claim: str
    path: str
    inside: bool


def _modes(row: Row) -> str:
    modes = (row["spec"].get("claimInfo") or {}).get("accessModes") or {}
    return ",".join(_MODE_NAMES[field] for field in _MODE_NAMES if modes.get(field)) or "-"


def _users(row: Row) -> str:
    used = row.get("usedBy") or {}
    return ", ".join(user["name"] for users in used.values() for user in users or ()) or "-"


COLUMNS = (
    Column("NAME", lambda row: row["meta"]["name"]),
    Column("PATH", lambda row: row["spec"]["path"]),
    Column("SIZE", lambda row: str((row["spec"].get("claimInfo") or {}).get("size") or "-")),
    Column("ACCESS", _modes),
    Column("USED BY", _users),
    Column("AGE", lambda row: age(row["meta"].get("createdAt") or row.get("createdAt"))),
    Column("CLAIM", lambda row: str(row["spec"].get("claimName") or "-"), wide=True),
    Column("ID", lambda row: row["meta"]["id"], wide=True),
)
FILES = (
    Column("NAME", lambda row: PurePosixPath(row["path"]).name + "/" * bool(row["folder"])),
    Column("SIZE", lambda row: "-" if row["folder"] else show_size(row["size"])),
    Column("AGE", lambda row: age(row.get("modifiedAt"))),
)


@click.group("pvc", cls=Guessing)
def command() -> None:
    """Make claims, list them, and copy files to and from them."""


@command.command("create")
@click.argument("name")
@click.option("--size", required=True, metavar="SIZE", help="10G, 10TB, 10Ti.")
@click.option("--path", required=True, metavar="PATH", help="Where it is mounted: /checkpoints.")
@click.option(
    "--access-mode",
    "modes",
    multiple=True,
    type=click.Choice(tuple(_MODES), case_sensitive=False),
    help="RWO (one node), ROX, RWX (many nodes). May be repeated.",
)
@click.option("--storage-class", metavar="NAME", help="Storage class.")
@click.option("--read-only", is_flag=True, help="Mount it read-only.")
@project_option
def create(
    name: str,
    size: str,
    path: str,
    modes: tuple[str, ...],
    storage_class: str | None,
    read_only: bool,
    project: str | None,
) -> None:
    """Make a claim."""
    parse_size(size)
    session = Session(project)
    info: dict[str, Any] = {"size": size}
    if modes:
        info["accessModes"] = {field: short in modes for short, field in _MODES.items()}
    if storage_class:
        info["storageClass"] = storage_class
    spec: dict[str, Any] = {"path": path, "claimInfo": info}
    if read_only:
        spec["readOnly"] = True
    made = claims.create(session.server, name, session.project_id, session.cluster_id, spec)
    claim = made["spec"].get("claimName") or name
    click.echo(f"{claim}  mount it with --existing-pvc claimname={claim},path={path}")


@command.command("list")
@project_option
@output_options
def listing(project: str | None, output: str) -> None:
    """List claims and who uses them."""
    session = Session(project)
    rows = claims.listing(session.server, session.project_id)
    show_rows(rows, COLUMNS, output, name=lambda row: str(row["meta"]["name"]))
    if not rows and output in ("table", "wide"):
        note("no claims; make one with `torchyard pvc create NAME --size 10G --path /NAME`")


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@project_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(names: tuple[str, ...], project: str | None, yes: bool) -> None:
    """Delete claims and all that is in them."""
    session = Session(project)
    found = [claims.find(session.server, name, session.project_id) for name in names]
    if not yes:
        ask(f"Delete {', '.join(entry['meta']['name'] for entry in found)} and all that is in there?")
    for entry in found:
        claims.delete(session.server, entry["meta"]["id"])
        click.echo(f"{entry['meta']['name']} is deleted")


@command.command("ls")
@click.argument("where", metavar="CLAIM:/PATH")
@project_option
@output_options
def ls(where: str, project: str | None, output: str) -> None:
    """List a folder of a claim."""
    session = Session(project)
    place = place_of(where) or Place(where, "", True)
    entries = claims.files(session.server, _id(session, place), place.path)
    if output in ("json", "yaml"):
        write(as_text(entries, output))
        return
    ordered = sorted(entries, key=lambda row: (not row["folder"], row["path"]))
    show_rows(ordered, FILES, output, name=lambda row: str(row["path"]))


@command.command("rm")
@click.argument("wheres", nargs=-1, required=True, metavar="CLAIM:/PATH...")
@project_option
@click.option("-r", "--recursive", is_flag=True, help="Folders with all that is in them.")
def rm(wheres: tuple[str, ...], project: str | None, recursive: bool) -> None:
    """Remove files from a claim."""
    session = Session(project)
    for where in wheres:
        place = _in_claim(where)
        if not place.path:
            raise Invalid(f"{where} is the whole claim", f"delete it with `torchyard pvc delete {place.claim}`")
        identity = _id(session, place)
        if _is_folder(session, identity, place.path) and not recursive:
            raise Invalid(f"{where} is a folder", "remove it with -r")
        claims.remove_file(session.server, identity, place.path)


@command.command("cp")
@click.argument("source", metavar="FROM")
@click.argument("aim", metavar="TO")
@project_option
@click.option("--force", is_flag=True, help="Write over files that are there.")
def cp(source: str, aim: str, project: str | None, force: bool) -> None:
    """Copy files and folders between this machine and a claim: one of FROM and TO is CLAIM:/PATH.

    A folder is copied as TO, a file as TO, or into it where TO is a folder or ends with a slash.
    """
    session = Session(project)
    there, back = place_of(aim), place_of(source)
    if (there is None) == (back is None):
        raise click.UsageError("one of the two paths must be in a claim, as CLAIM:/PATH")
    count, size = (
        _upload(session, Path(source), there, force) if there else _download(session, _in_claim(source), aim, force)
    )
    click.echo(f"{plural(count, 'file')}, {show_size(size)}")


def place_of(text: str) -> Place | None:
    """`CLAIM:/PATH`; None for a path of this machine. `./a:b` is one of this machine."""
    match = _PLACE.fullmatch(text)
    if match is None:
        return None
    path = match[2]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Invalid(f"{text} leads out of the claim", "write the path from the claim's root, without ..")
    return Place(match[1], "/".join(parts), path == "" or path.endswith("/"))


def _in_claim(text: str) -> Place:
    place = place_of(text)
    if place is None:
        raise click.UsageError(f"{text} is not in a claim: write CLAIM:/PATH")
    return place


def _id(session: Session, place: Place) -> str:
    return str(claims.find(session.server, place.claim, session.project_id)["meta"]["id"])


def _is_folder(session: Session, identity: str, path: str) -> bool:
    if not path:
        return True
    parent, _, name = path.rpartition("/")
    for entry in claims.files(session.server, identity, parent):
        if PurePosixPath(entry["path"]).name == name:
            return bool(entry["folder"])
    raise NotFound(f"there is no {path} in the claim", "see `torchyard pvc ls CLAIM:/`")


def _is_known_folder(session: Session, identity: str, path: str) -> bool:
    try:
        return _is_folder(session, identity, path)
    except NotFound:
        return False


def _upload(session: Session, source: Path, place: Place, force: bool) -> tuple[int, int]:
    if not source.exists():
        raise Invalid(f"there is no {source} here")
    identity = _id(session, place)
    if source.is_dir():
        base = "/".join(filter(None, [place.path, source.resolve().name if place.inside and place.path else ""]))
        files = [(path, f"{base}/{path.relative_to(source).as_posix()}".lstrip("/")) for path in _files(source)]
    else:
        inside = place.inside or _is_known_folder(session, identity, place.path)
        files = [(source, f"{place.path}/{source.name}".lstrip("/") if inside else place.path)]
    if not force:
        _refuse_taken(session, identity, [name for _, name in files])
    total = 0
    for path, name in files:
        size = path.stat().st_size
        claims.write_file(session.server, identity, name, metered(pieces_of(path), name, size), size)
        total += size
    return len(files), total


def _refuse_taken(session: Session, identity: str, names: list[str]) -> None:
    for folder in {posixpath.dirname(name) for name in names}:
        try:
            there = {str(entry["path"]) for entry in claims.files(session.server, identity, folder)}
        except NotFound:
            continue
        for name in names:
            if name in there:
                raise Conflict(f"{name} is in the claim already", "write over it with --force")


def _files(folder: Path) -> list[Path]:
    """The files of a folder. Links that lead out of it, or to folders, are left where they are."""
    found: list[Path] = []
    left, root = 0, folder.resolve()
    for parent, folders, names in os.walk(folder):
        folders.sort()
        left += sum((Path(parent) / name).is_symlink() for name in folders)
        for path in (Path(parent) / name for name in sorted(names)):
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                left += 1
            elif path.exists() and stat.S_ISREG(path.stat().st_mode):
                found.append(path)
    if left:
        note(f"{plural(left, 'link')} left out: links to folders and out of {folder} are not followed")
    return found


def _download(session: Session, place: Place, aim: str, force: bool) -> tuple[int, int]:
    identity = _id(session, place)
    target = Path(aim)
    if _is_folder(session, identity, place.path):
        name = PurePosixPath(place.path).name
        base = target / name if aim.endswith("/") and name else target
        pairs = [
            (entry, base / PurePosixPath(entry["path"]).relative_to(place.path or "."))
            for entry in all_files(session.server, identity, place.path)
        ]
    else:
        inside = target.is_dir() or aim.endswith("/")
        (entry,) = claims.files(session.server, identity, place.path)
        pairs = [(entry, target / PurePosixPath(place.path).name if inside else target)]
    taken = [str(path) for _, path in pairs if path.exists()]
    if taken and not force:
        raise Conflict(f"{taken[0]} is there already", "write over it with --force")
    for entry, path in pairs:
        download(session.server, identity, entry, path)
    return len(pairs), sum(int(entry["size"]) for entry, _ in pairs)
