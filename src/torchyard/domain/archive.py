"""What an archive of code may hold, so that unpacking it writes nothing outside its folder, whoever packed it.

Our own, because tarfile's filters came with 3.11.4, and Debian 12 has 3.11.2.
"""

import posixpath
import tarfile
from collections.abc import Iterable, Iterator


def checked(members: Iterable[tarfile.TarInfo]) -> Iterator[tarfile.TarInfo]:
    """The members, one by one, under their plain names. Raises tarfile.TarError at the first that may not be
    unpacked."""
    folders: set[str] = {"."}
    others: set[str] = set()
    for member in members:
        reason = _unsafe(member, folders, others)
        if reason is not None:
            raise tarfile.TarError(f"{member.name[:100]!r} {reason}")
        name = posixpath.normpath(member.name)
        folders.update(_above(name))
        (folders if member.isdir() else others).add(name)
        # `c/.` as it stands would make a folder c, and then fail on it.
        member.name = name
        yield member


def _unsafe(member: tarfile.TarInfo, folders: set[str], others: set[str]) -> str | None:
    """Why this member may not follow those folders and files or links; None when it may."""
    if member.name.startswith("/") or ".." in member.name.split("/") or "\0" in member.name:
        return "leads out of the folder"
    if not (member.isreg() or member.isdir() or member.issym()):
        return "is no plain file, folder or link"
    name = posixpath.normpath(member.name)
    if name in others or (name in folders and not member.isdir()):
        return "is there twice"
    if not others.isdisjoint(_above(name)):
        return "lies behind a link or file"
    if member.issym() and not _stays(name, member.linkname):
        return "is a link that leads out of the folder"
    return None


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _stays(name: str, aim: str) -> bool:
    """Up first and down then: what goes up after it went down may have gone through another link."""
    parts = [part for part in aim.split("/") if part not in ("", ".")]
    while parts and parts[0] == "..":
        del parts[0]
    if aim.startswith("/") or not aim or "\0" in aim or ".." in parts:
        return False
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(name), aim))
    return inside != ".." and not inside.startswith("../")
