"""Files of claims, which are folders. Nothing outside of a claim can be reached, by `..` or by links."""

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from torchyard.domain.errors import Invalid, NotFound, Unavailable
from torchyard.domain.observation import FileEntry
from torchyard.engines.engine import FileReader

_NOTHING = (FileNotFoundError, NotADirectoryError)
LOOK = "look at the folder above it: torchyard pvc ls CLAIM:/"


def inside(root: Path, path: str) -> Path:
    """The file that a path means. Raises Invalid when it leaves the claim."""
    try:
        wanted = (root / path.lstrip("/")).resolve()
        with suppress(*_NOTHING):
            wanted.lstat()
    except (OSError, RuntimeError, ValueError) as problem:
        # Links in a circle, a name that is too long or holds a zero byte, a folder that must not be entered.
        raise Invalid(f"{path[:200]!r} cannot be reached on the claim", "give another path") from problem
    if not wanted.is_relative_to(root.resolve()):
        raise Invalid(f"{path[:200]!r} leads out of the claim", "give a path inside it")
    return wanted


def listing(root: Path, path: str) -> tuple[FileEntry, ...]:
    """One folder, or the file itself. Raises NotFound."""
    base = root.resolve()
    wanted = inside(root, path)
    try:
        if not wanted.is_dir():
            return (_entry(base, wanted),)
        children = sorted(wanted.iterdir())
    except _NOTHING as problem:
        raise NotFound(f"there is no {path or '/'!r} on the claim", LOOK) from problem
    except PermissionError as problem:
        raise Invalid(f"{path!r} must not be read", "ask its owner for the right") from problem
    entries = []
    for child in children:
        # It may have gone since, as a snapshot that was renamed; or be a link to nowhere.
        with suppress(OSError, RuntimeError):
            if child.resolve(strict=True).is_relative_to(base):
                entries.append(_entry(base, child))
    return tuple(entries)


def _entry(base: Path, path: Path) -> FileEntry:
    facts = path.stat()
    folder = stat.S_ISDIR(facts.st_mode)
    return FileEntry(
        path=str(path.relative_to(base)) if path != base else "",
        folder=folder,
        size=0 if folder else facts.st_size,
        modified_at=datetime.fromtimestamp(facts.st_mtime, UTC),
    )


def open_file(root: Path, path: str) -> FileReader:
    """For reading. Raises NotFound, Invalid for what is no plain file."""
    wanted = inside(root, path)
    if wanted.is_dir():
        raise Invalid(f"{path!r} is a folder", "name a file in it")
    if not wanted.is_file():
        raise NotFound(f"there is no {path!r} on the claim", LOOK)
    try:
        return wanted.open("rb")
    except _NOTHING as problem:
        raise NotFound(f"there is no {path!r} on the claim", LOOK) from problem
    except PermissionError as problem:
        raise Invalid(f"{path!r} must not be read", "ask its owner for the right") from problem


async def put(root: Path, path: str, data: AsyncIterator[bytes]) -> None:
    """Write a file, atomically; folders on the way are made."""
    wanted = inside(root, path)
    if wanted == root.resolve() or wanted.is_dir():
        raise Invalid(f"{path!r} is a folder", "name the file")
    try:
        await asyncio.to_thread(wanted.parent.mkdir, parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=wanted.parent, prefix=".upload-")
        try:
            with os.fdopen(handle, "wb") as file:
                async for chunk in data:
                    await asyncio.to_thread(file.write, chunk)
                await asyncio.to_thread(file.flush)
                await asyncio.to_thread(os.fsync, file.fileno())
            Path(fresh).chmod(0o644)
            Path(fresh).replace(wanted)
        finally:
            Path(fresh).unlink(missing_ok=True)
    except (NotADirectoryError, FileExistsError) as problem:
        raise Invalid(f"{path!r} leads through a file", "choose another path") from problem
    except OSError as problem:
        raise Unavailable(f"{path} cannot be written: {problem.strerror}", "free space, then try again") from problem


def remove(root: Path, path: str) -> None:
    """Delete a file or folder; of a link, the link. Raises NotFound."""
    name = PurePosixPath(path).name
    wanted = inside(root, path) if name in ("", "..") else inside(root, str(PurePosixPath(path).parent)) / name
    if wanted == root.resolve():
        raise Invalid("the claim itself is deleted with `pvc delete`")
    try:
        if stat.S_ISDIR(wanted.lstat().st_mode):
            shutil.rmtree(wanted)
        else:
            wanted.unlink()
    except (*_NOTHING, ValueError) as problem:
        raise NotFound(f"there is no {path!r} on the claim", LOOK) from problem
    except OSError as problem:
        raise Unavailable(f"{path[:200]} cannot be deleted: {problem.strerror}", "try again") from problem
