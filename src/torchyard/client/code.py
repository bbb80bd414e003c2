"""A folder of code, packed so that equal folders have equal hashes, and its upload. Knows files and patterns."""

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.client.http import Server
from torchyard.domain.errors import Invalid, NotFound, TooLarge

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

LIMIT = 50_000_000
"""Bytes of all files together."""
ALWAYS_LEFT_OUT = frozenset({".git", "__pycache__", ".venv"})
IGNORE_FILES = (".torchyardignore", ".gitignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """How many entries of a folder stay behind. A folder that is ignored is one, whatever it holds."""

    ignored: int = 0
    links: int = 0
    """Links that lead out of the folder."""
    specials: int = 0
    """Pipes, sockets and devices."""
    ignore_file: str = ""

    def __str__(self) -> str:
        """`3 left out (2 ignored by .gitignore, 1 link that leads out)`; empty where nothing is."""
        reasons = [
            f"{self.ignored} ignored by {self.ignore_file}" if self.ignored else "",
            f"{self.links} link{' that leads' if self.links == 1 else 's that lead'} out" if self.links else "",
            f"{self.specials} no plain file{'s' * (self.specials > 1)}" if self.specials else "",
        ]
        count = self.ignored + self.links + self.specials
        return f"{count} left out ({', '.join(filter(None, reasons))})" if count else ""


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed folder: the tar.gz, its content hash, what is in it and what is not."""

    content: bytes
    digest: str
    files: int
    size: int
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class _Ignored:
    """The ignore file of a folder."""

    name: str
    spec: "GitIgnoreSpec"


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    path: Path
    info: os.stat_result


def pack(folder: Path, limit: int = LIMIT) -> Packed:
    """Pack a folder, less what its .torchyardignore (else .gitignore) leaves out.

    Raises Invalid for what cannot be read and TooLarge, naming the largest files, for more than `limit` bytes.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise Invalid(f"{folder} is not a folder", "name the folder that holds your code")
    ignored, left = _ignored(root), Counter[str]()
    items = sorted(_walk(root, root, ignored, left), key=lambda item: item.name)
    size = sum(item.info.st_size for item in items if stat.S_ISREG(item.info.st_mode))
    if size > limit:
        raise _too_large(folder, items, size, limit)
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for item in items:
            _add(archive, item)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream:
        stream.write(plain.getvalue())
    content = packed.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    files = sum(stat.S_ISREG(item.info.st_mode) for item in items)
    return Packed(
        content, f"sha256:{digest}", files, size, LeftOut(**left, ignore_file=ignored.name if ignored else "")
    )


def upload(server: Server, packed: Packed) -> str:
    """Give the server the folder unless it has it; answers the content hash that specs name."""
    if not _has(server, packed.digest):
        headers = {"Content-Type": "application/gzip"}
        server.send("POST", "/code", body=packed.content, headers=headers, again=True)
    return packed.digest


def _has(server: Server, digest: str) -> bool:
    try:
        server.send("HEAD", f"/code/{digest.removeprefix('sha256:')}")
    except NotFound:
        return False
    return True


def _ignored(root: Path) -> _Ignored | None:
    try:
        found = {entry.name for entry in os.scandir(root)}
    except OSError as error:
        raise _unreadable(root, error) from None
    for name in IGNORE_FILES:
        path = root / name
        if name in found and path.is_file():
            from pathspec import GitIgnoreSpec

            return _Ignored(name, GitIgnoreSpec.from_lines(_text(path).splitlines()))
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}") from None


def _walk(folder: Path, root: Path, ignored: _Ignored | None, left: Counter[str]) -> Iterator[_Item]:
    """What travels; what does not is counted in `left`. What never travels anywhere is not spoken of."""
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise _unreadable(folder, error) from None
    for entry in entries:
        path = Path(entry.path)
        name = path.relative_to(root).as_posix()
        info = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(info.st_mode)
        if entry.name in ALWAYS_LEFT_OUT:
            continue
        if ignored and ignored.spec.match_file(name + "/" * is_folder):
            left["ignored"] += 1
        elif is_folder:
            yield _Item(name, path, info)
            yield from _walk(path, root, ignored, left)
        elif stat.S_ISREG(info.st_mode) or (stat.S_ISLNK(info.st_mode) and _inside(path, root)):
            yield _Item(name, path, info)
        else:
            left["links" if stat.S_ISLNK(info.st_mode) else "specials"] += 1


def _inside(link: Path, root: Path) -> bool:
    # A link that leads out of the folder would mean another file, or none, where the copy is.
    aim = link.readlink()
    return not aim.is_absolute() and link.resolve().is_relative_to(root)


def _add(archive: tarfile.TarFile, item: _Item) -> None:
    entry = tarfile.TarInfo(item.name)
    entry.mode = 0o755 if item.info.st_mode & 0o100 else 0o644
    if stat.S_ISDIR(item.info.st_mode):
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    elif stat.S_ISLNK(item.info.st_mode):
        # Said the short way: one that goes down and up again could mean another place where it is unpacked.
        aim = os.path.relpath(item.path.resolve(), item.path.parent.resolve())
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, aim, 0o777
        archive.addfile(entry)
    else:
        try:
            content = item.path.read_bytes()
        except OSError as error:
            raise _unreadable(item.path, error) from None
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))


def _unreadable(path: Path, error: OSError) -> Invalid:
    return Invalid(
        f"{path} cannot be read: {error.strerror}", "make it readable, or leave it out by a line in .torchyardignore"
    )


def _too_large(folder: Path, items: list[_Item], size: int, limit: int) -> TooLarge:
    files = [item for item in items if stat.S_ISREG(item.info.st_mode)]
    largest = sorted(files, key=lambda item: item.info.st_size, reverse=True)[:5]
    named = ", ".join(f"{item.name} ({item.info.st_size / 1e6:.1f} MB)" for item in largest)
    return TooLarge(
        f"{folder} holds {size / 1e6:.1f} MB, more than the {limit / 1e6:g} MB of code that travel",
        f"put data on a claim, or name it in .torchyardignore; the largest files: {named}",
    )
