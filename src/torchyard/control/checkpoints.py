"""Finds and verifies checkpoints: on the claims that a workload mounts, or in the folder it runs in."""

import asyncio
import posixpath
from dataclasses import dataclass
from datetime import datetime, timedelta

from torchyard.control import read
from torchyard.control.yard import Yard
from torchyard.diagnosis.checkpoint import CheckpointCheck, looks_like_checkpoint, verify, verify_folder
from torchyard.domain.errors import NotFound, TorchyardError
from torchyard.domain.isolation import specs_of
from torchyard.domain.observation import FileEntry
from torchyard.domain.workload import Attempt, Workload
from torchyard.engines.engine import Engine, FileReader

MAX_ENTRIES = 5000
MAX_DEPTH = 6
LATE = timedelta(seconds=5)
"""A file that is younger than the end of the last attempt by this was written by somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A snapshot on a claim or in the working folder. `attempt` wrote it; None: it was written before or after it."""

    claim: str
    path: str
    size: int
    modified_at: datetime
    complete: bool
    format: str
    problem: str | None
    attempt: int | None


async def listing(yard: Yard, workload: Workload, deep: bool = False) -> tuple[Checkpoint, ...]:
    """All checkpoints that the workload can see, the newest first. `deep` reads every byte."""
    engine = yard.engine(workload.cluster)
    attempts = await read.attempts_of(yard, workload.id)
    found: list[Checkpoint] = []
    for place in places(workload):
        for entry, names in await _candidates(engine, workload.project, place):
            check = await _verify(engine, workload.project, place, entry, names, deep)
            if check is not None:
                found.append(_checkpoint(place, entry, check, workload, attempts))
    return tuple(sorted(found, key=lambda c: c.modified_at, reverse=True))


def places(workload: Workload) -> tuple[str, ...]:
    """Claims by name; the working folder by its path when the workload runs in place and mounts no claim."""
    specs = specs_of(workload.submission)
    mounted = tuple(dict.fromkeys(p.claim_name for spec in specs for p in spec.storage.pvc if p.claim_name))
    folder = workload.submission.spec.working_dir
    in_place = workload.submission.torchyard.code is None and folder is not None and folder.startswith("/")
    if mounted or not in_place or workload.submission.spec.image is not None:
        return mounted
    assert folder is not None
    return (folder,)


async def open_checkpoint(yard: Yard, workload: Workload, path: str, claim: str | None) -> tuple[FileReader, int]:
    """The file for reading and its size. Raises NotFound with what there is."""
    engine = yard.engine(workload.cluster)
    for place in (claim,) if claim else places(workload):
        if place not in places(workload):
            break
        try:
            reader = await engine.open_file(workload.project, place, path)
        except NotFound:
            continue
        size = await asyncio.to_thread(reader.seek, 0, 2)
        await asyncio.to_thread(reader.seek, 0)
        return reader, size
    known = ", ".join(c.path for c in (await listing(yard, workload))[:5])
    raise NotFound(
        f"{workload.name} has no checkpoint {path!r}", f"there are: {known}" if known else "there is none yet"
    )


async def _candidates(engine: Engine, project: str, place: str) -> list[tuple[FileEntry, frozenset[str]]]:
    """Files and folders that look like checkpoints, with the names in the folder for folders."""
    found: list[tuple[FileEntry, frozenset[str]]] = []
    folders = [("", 0)]
    seen = 0
    while folders and seen < MAX_ENTRIES:
        path, depth = folders.pop()
        try:
            entries = await engine.list_files(project, place, path)
        except TorchyardError:
            continue
        seen += len(entries)
        names = frozenset(posixpath.basename(e.path) for e in entries)
        if ".metadata" in names:
            when = max(e.modified_at for e in entries)
            size = sum(e.size for e in entries)
            found.append((FileEntry(path=path or ".", folder=True, size=size, modified_at=when), names))
            continue
        for entry in entries:
            if entry.folder:
                hidden = posixpath.basename(entry.path).startswith(".")
                if depth < MAX_DEPTH and not hidden:
                    folders.append((entry.path, depth + 1))
            elif looks_like_checkpoint(entry.path):
                found.append((entry, frozenset()))
    return found


async def _verify(
    engine: Engine, project: str, place: str, entry: FileEntry, names: frozenset[str], deep: bool
) -> CheckpointCheck | None:
    path = posixpath.join(entry.path, ".metadata") if entry.folder else entry.path
    try:
        reader = await engine.open_file(project, place, path)
    except TorchyardError:
        return None
    try:
        if entry.folder:
            return await asyncio.to_thread(verify_folder, reader, names)
        return await asyncio.to_thread(verify, reader, entry.path, entry.size, deep=deep)
    finally:
        await asyncio.to_thread(reader.close)


def _checkpoint(
    place: str, entry: FileEntry, check: CheckpointCheck, workload: Workload, attempts: tuple[Attempt, ...]
) -> Checkpoint:
    writer = None
    for attempt in attempts:
        if attempt.created_at <= entry.modified_at:
            writer = attempt.number
    if attempts and attempts[-1].ended_at is not None and entry.modified_at > attempts[-1].ended_at + LATE:
        writer = None
    return Checkpoint(
        claim=place,
        path=entry.path,
        size=entry.size,
        modified_at=entry.modified_at,
        complete=check.complete,
        format=check.format,
        problem=check.problem,
        attempt=writer if entry.modified_at >= workload.created_at else None,
    )
