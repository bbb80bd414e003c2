"""Makes room: forgets workloads that ended long ago, with their logs, attempts and code copies. Never claims."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from torchyard.control.read import attempts_of
from torchyard.control.turn import now, turn
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import NotFound
from torchyard.domain.quantities import show_duration, show_size
from torchyard.domain.workload import Workload
from torchyard.store import audit, idempotency, workloads
from torchyard.store.database import read, write


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was forgotten, or would be."""

    workloads: tuple[str, ...]
    bytes: int
    sentence: str


async def prune(yard: Yard, older_than: float, dry_run: bool, actor: Actor) -> Pruned:
    """Forget workloads that ended more than `older_than` seconds ago, and code that nobody uses any more."""
    old = await asyncio.to_thread(_ended, yard, older_than)
    freed = 0
    for workload in old:
        for attempt in await attempts_of(yard, workload.id):
            if attempt.handle is not None:
                freed += await asyncio.to_thread(_size, Path(attempt.handle.ref))
        if not dry_run:
            await _forget(yard, workload, actor)
    if not dry_run:
        await asyncio.to_thread(_forget_requests, yard)
    freed += await asyncio.to_thread(_unused_code, yard, {w.id for w in old}, dry_run)
    did = "would forget" if dry_run else "forgot"
    age = show_duration(older_than)
    sentence = f"{did} {len(old)} workloads that ended more than {age} ago; {show_size(freed)}"
    return Pruned(workloads=tuple(w.name for w in old), bytes=freed, sentence=sentence)


def _ended(yard: Yard, older_than: float) -> tuple[Workload, ...]:
    with read(yard.database) as connection:
        return workloads.ended_before(connection, now() - timedelta(seconds=older_than))


def _size(folder: Path) -> int:
    if not folder.is_dir():
        return 0
    return sum(f.lstat().st_blocks * 512 for f in folder.rglob("*") if not f.is_dir() or f.is_symlink())


async def _forget(yard: Yard, old: Workload, actor: Actor) -> None:
    try:
        async with turn(yard, old.id) as mine:
            if mine.workload != old:
                # Somebody has resumed it since.
                return
            await yard.engine(old.cluster).remove(old.project, old.id)
            await asyncio.to_thread(_erase, yard, old, actor)
    except NotFound:
        return
    yard.feed.publish(old.id, "deleted")


def _erase(yard: Yard, workload: Workload, actor: Actor) -> None:
    with write(yard.database) as connection:
        workloads.remove(connection, workload.id)
        audit.append(connection, actor.name, "prune", f"workload/{workload.name}", now())


def _forget_requests(yard: Yard) -> None:
    with write(yard.database) as connection:
        idempotency.forget_old(connection, now())


def _unused_code(yard: Yard, forgotten: set[str], dry_run: bool) -> int:
    """Bytes of code archives that no remembered workload names."""
    with read(yard.database) as connection:
        used = {code.removeprefix("sha256:") for code in workloads.codes(connection, without=forgotten)}
    freed = 0
    hour_ago = (now() - timedelta(hours=1)).timestamp()
    for path in (yard.settings.data / "code").glob("*.tar.gz"):
        stat = path.stat()
        if path.name.removesuffix(".tar.gz") not in used and stat.st_mtime < hour_ago:
            freed += stat.st_size
            if not dry_run:
                path.unlink()
    return freed
