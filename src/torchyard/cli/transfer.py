"""Files of a claim brought here: one by one, or a folder that appears whole or not at all."""

import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from torchyard.cli.meter import copied
from torchyard.client import Server, claims

Entry = dict[str, Any]


def all_files(server: Server, claim: str, folder: str) -> list[Entry]:
    """The files in a folder of a claim and below, by their paths."""
    found: list[Entry] = []
    for entry in sorted(claims.files(server, claim, folder), key=lambda row: str(row["path"])):
        found += all_files(server, claim, entry["path"]) if entry["folder"] else [entry]
    return found


def download(server: Server, claim: str, entry: Entry, aim: Path) -> None:
    """One file."""
    with claims.open_file(server, claim, entry["path"]) as response:
        copied(response, aim, int(entry["size"]))


def download_folder(server: Server, claim: str, folder: str, aim: Path) -> int:
    """A folder, in place of what was at `aim`; answers its bytes."""
    aim.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=aim.parent, prefix=f".{aim.name}.") as work:
        fresh = Path(work) / "fresh"
        fresh.mkdir()
        entries = all_files(server, claim, folder)
        for entry in entries:
            download(server, claim, entry, fresh / PurePosixPath(entry["path"]).relative_to(folder))
        if aim.exists():
            shutil.move(aim, Path(work) / "before")
        fresh.rename(aim)
    return sum(int(entry["size"]) for entry in entries)
