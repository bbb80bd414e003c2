"""Keeps folders that travel with workloads, once for each content: <data>/code/<sha256>.tar.gz."""

import asyncio
import hashlib
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

from torchyard.control.yard import Yard
from torchyard.domain.archive import checked
from torchyard.domain.errors import Invalid, TooLarge, Unavailable

MAX_BYTES = 50 * 1000 * 1000
"""Unpacked; more than that is data, and belongs on a claim."""
MAX_FILES = 20000


def archive(data: Path, code: str) -> Path:
    """Where a code archive lies."""
    return data / "code" / f"{code.removeprefix('sha256:')}.tar.gz"


async def has(yard: Yard, code: str) -> bool:
    """Is this content here? If so it stays for the submission that is about to name it."""
    if re.fullmatch(r"(sha256:)?[0-9a-f]{64}", code) is None:
        return False

    def touch() -> bool:
        try:
            os.utime(archive(yard.settings.data, code))
        except FileNotFoundError:
            return False
        return True

    return await asyncio.to_thread(touch)


async def keep(yard: Yard, chunks: AsyncIterator[bytes]) -> str:
    """Store an archive; `sha256:...` of its bytes. Raises Invalid, TooLarge, Unavailable."""
    try:
        return await _keep(yard, chunks)
    except OSError as problem:
        raise Unavailable(
            f"the code cannot be kept: {problem.strerror}", "free space on the server's disk"
        ) from problem


async def _keep(yard: Yard, chunks: AsyncIterator[bytes]) -> str:
    folder = yard.settings.data / "code"
    await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
    handle, name = await asyncio.to_thread(tempfile.mkstemp, dir=folder, prefix=".upload-")
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(handle, "wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > MAX_BYTES:
                    raise TooLarge(
                        "the code folder is over 50 MB", "put data on a claim, or ignore it in .torchyardignore"
                    )
                digest.update(chunk)
                await asyncio.to_thread(file.write, chunk)
        await asyncio.to_thread(_inspect, Path(name))
        code = f"sha256:{digest.hexdigest()}"
        await asyncio.to_thread(Path(name).replace, archive(yard.settings.data, code))
    finally:
        await asyncio.to_thread(Path(name).unlink, missing_ok=True)
    return code


def _inspect(path: Path) -> None:
    """Refuse what could not be unpacked safely into a folder of its own."""
    total = 0
    try:
        with tarfile.open(path, "r:gz") as tar:
            for count, member in enumerate(checked(tar)):
                total += member.size
                if total > MAX_BYTES or count > MAX_FILES:
                    raise TooLarge("the code folder is over 50 MB or 20,000 files", "put data on a claim")
    except (tarfile.TarError, zlib.error, EOFError, OSError) as problem:
        raise Invalid(f"this is no tar.gz archive of a folder that can be taken: {problem}") from problem
