"""Files of claims, which are folders. Nothing outside of a claim can be reached, by `..` or by links."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from torchyard.domain.errors import Invalid, NotFound, Unavailable
from torchyard.domain.observation import FileEntry
from torchyard.engines.engine import FileReader


def inside(root: Path, path: str) -> Path:
    """The file that a path means. Raises Invalid when it leaves the claim."""
    if "\0" in path:
        raise Invalid("a path may not hold a zero byte")
    wanted = (root / path.lstrip("/")).resolve()
    if not wanted.is_relative_to(root.resolve()):
        raise Invalid(f"{path[:200]!r} leads out of the claim", "give a path inside it")
    return wanted


def listing(root: Path, path: str) -> tuple[FileEntry, ...]:
    """One folder, or the file itself. Raises NotFound."""
    base = root.resolve()
    wanted = inside(root, path)
    if not wanted.exists():
        raise NotFound(f"there is no {path or '/'!r} on the claim")
    if not wanted.is_dir():
        return (_entry(base, wanted),)
    entries = []
    for child in sorted(wanted.iterdir()):
        if child.exists() and child.resolve().is_relative_to(base):
            entries.append(_entry(base, child))
    return tuple(entries)


def _entry(base: Path, path: Path) -> FileEntry:
    stat = path.stat()
    return FileEntry(
        path=str(path.relative_to(base)) if path != base else "",
        folder=path.is_dir(),
        size=0 if path.is_dir() else stat.st_size,
        modified_at=datetime.fromtimestamp(stat.st_mtime, UTC),
    )


def open_file(root: Path, path: str) -> FileReader:
    """For reading. Raises NotFound, Invalid for what is no plain file."""
    wanted = inside(root, path)
    if wanted.is_dir():
        raise Invalid(f"{path!r} is a folder", "name a file in it")
    if not wanted.is_file():
        raise NotFound(f"there is no {path!r} on the claim")
    return wanted.open("rb")


async def put(root: Path, path: str, data: AsyncIterator[bytes]) -> None:
    """Write a file, atomically; folders on the way are made."""
    wanted = inside(root, path)
    if wanted == root.resolve() or wanted.is_dir():
        raise Invalid(f"{path!r} is a folder", "name the file")
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=wanted.parent, prefix=".upload-")
        try:
            with os.fdopen(handle, "wb") as file:
                async for chunk in data:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            Path(fresh).chmod(0o644)
            Path(fresh).replace(wanted)
        finally:
            Path(fresh).unlink(missing_ok=True)
    except NotADirectoryError as problem:
        raise Invalid(f"{path!r} leads through a file", "choose another path") from problem
    except OSError as problem:
        raise Unavailable(f"{path} cannot be written: {problem.strerror}", "free space, then try again") from problem


def remove(root: Path, path: str) -> None:
    """Delete a file or folder. Raises NotFound."""
    if inside(root, path) == root.resolve():
        raise Invalid("the claim itself is deleted with `pvc delete`")
    wanted = inside(root, str(Path(path.lstrip("/")).parent)) / Path(path).name
    if wanted.is_symlink() or wanted.is_file():
        wanted.unlink()
    elif wanted.is_dir():
        shutil.rmtree(wanted)
    else:
        raise NotFound(f"there is no {path!r} on the claim")
