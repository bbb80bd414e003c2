"""Claims (pvc data sources): made on every engine that needs them, never deleted while used; their files."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

from sqlalchemy import Connection

from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.asset import Claim
from torchyard.domain.errors import InUse, Invalid, NotFound
from torchyard.domain.isolation import specs_of
from torchyard.domain.model import NAME
from torchyard.domain.observation import FileEntry
from torchyard.domain.storage import ClaimInfo
from torchyard.domain.workload import Workload
from torchyard.engines.engine import FileReader
from torchyard.store import audit, claims, projects
from torchyard.store.database import read, write

CLUSTER = "local"


async def create(
    yard: Yard,
    *,
    project: str,
    name: str,
    info: ClaimInfo,
    path: str,
    actor: Actor,
    claim_name: str | None = None,
    description: str = "",
    read_only: bool = False,
) -> Claim:
    """Make a claim. Raises Invalid, NotFound (project), Conflict (taken name)."""
    chosen = claim_name or name
    for text in (name, chosen):
        if not re.fullmatch(NAME, text) or len(text) > 63:
            raise Invalid(f"{text[:63]!r} is no good name", "use lower case letters, digits and dashes, at most 63")
    claim = Claim(
        id=str(uuid.uuid4()),
        name=name,
        claim_name=chosen,
        project=project,
        path=path,
        info=info,
        created_at=now(),
        created_by=actor.name,
        description=description,
        read_only=read_only,
    )
    await asyncio.to_thread(_look, yard, claim)
    await yard.engine(CLUSTER).make_claim(project, chosen)
    await asyncio.to_thread(_insert, yard, claim, actor)
    return claim


def _look(yard: Yard, claim: Claim) -> None:
    with read(yard.database) as connection:
        _check(connection, claim)


def _insert(yard: Yard, claim: Claim, actor: Actor) -> None:
    with write(yard.database) as connection:
        _check(connection, claim)
        claims.insert(connection, claim)
        audit.append(connection, actor.name, "create", f"pvc/{claim.name}", claim.created_at)


def _check(connection: Connection, claim: Claim) -> None:
    if projects.find(connection, claim.project) is None:
        raise NotFound(f"there is no project {claim.project!r}")
    if any(claim.name == other.name for other in claims.listing(connection, claim.project)):
        raise claims.taken(claim)


async def change(
    yard: Yard, claim_id: str, actor: Actor, *, name: str | None, description: str | None, path: str | None
) -> Claim:
    """Give it another name, description or usual mount point (None: as it is); what workloads call it stays.

    Raises NotFound, Conflict (taken name).
    """
    old = await get(yard, claim_id)
    fresh = replace(
        old,
        name=old.name if name is None else name,
        description=old.description if description is None else description,
        path=old.path if path is None else path,
        updated_at=now(),
        updated_by=actor.name,
    )

    def save(connection: Connection) -> None:
        claims.save(connection, fresh)
        audit.append(connection, actor.name, "update", f"pvc/{fresh.name}", now())

    await yard.writing(save)
    return fresh


async def listing(yard: Yard, project: str | None = None) -> tuple[Claim, ...]:
    """All claims, or those of one project."""

    def fetch() -> tuple[Claim, ...]:
        with read(yard.database) as connection:
            return claims.listing(connection, project)

    return await asyncio.to_thread(fetch)


async def get(yard: Yard, claim_id: str) -> Claim:
    """One claim by id. Raises NotFound."""

    def fetch() -> Claim | None:
        with read(yard.database) as connection:
            return claims.fetch(connection, claim_id)

    claim = await asyncio.to_thread(fetch)
    if claim is None:
        raise NotFound(f"there is no claim {claim_id}", "see `torchyard pvc list`")
    return claim


def claims_of(workload: Workload) -> set[str]:
    """Claims that any of its replicas mounts, the one that it resumes from included."""
    own = {pvc.claim_name for spec in specs_of(workload.submission) for pvc in spec.storage.pvc if pvc.claim_name}
    return own | ({workload.resume.claim} if workload.resume else set())


def users(yard: Yard, claim: Claim) -> tuple[Workload, ...]:
    """Workloads that use it now or may start again by themselves."""
    return tuple(
        w
        for w in yard.board.all()
        if w.project == claim.project and (w.active or not w.phase.terminal) and claim.claim_name in claims_of(w)
    )


async def delete(yard: Yard, claim_id: str, actor: Actor) -> Claim:
    """Delete a claim and all its files. Raises InUse while a workload uses it."""
    claim = await get(yard, claim_id)
    using = users(yard, claim)
    if using:
        names = ", ".join(w.name for w in using[:5])
        raise InUse(f"claim {claim.name} is used by {names}", "stop or delete these workloads first")

    def forget() -> None:
        with write(yard.database) as connection:
            claims.remove(connection, claim.id)
            audit.append(connection, actor.name, "delete", f"pvc/{claim.name}", now())

    # The files first: a new claim of this name must not begin with them.
    await yard.engine(CLUSTER).remove_claim(claim.project, claim.claim_name)
    await asyncio.to_thread(forget)
    return claim


async def files(yard: Yard, claim: Claim, path: str) -> tuple[FileEntry, ...]:
    """One folder of a claim."""
    return await yard.engine(CLUSTER).list_files(claim.project, claim.claim_name, path)


async def open_file(yard: Yard, claim: Claim, path: str) -> tuple[FileReader, int]:
    """A file and its size."""
    reader = await yard.engine(CLUSTER).open_file(claim.project, claim.claim_name, path)
    size = await asyncio.to_thread(reader.seek, 0, 2)
    await asyncio.to_thread(reader.seek, 0)
    return reader, size


async def put_file(yard: Yard, claim: Claim, path: str, data: AsyncIterator[bytes]) -> None:
    """Write a file, atomically."""
    await yard.engine(CLUSTER).put_file(claim.project, claim.claim_name, path, data)


async def remove_file(yard: Yard, claim: Claim, path: str) -> None:
    """Delete a file or folder."""
    await yard.engine(CLUSTER).remove_file(claim.project, claim.claim_name, path)
