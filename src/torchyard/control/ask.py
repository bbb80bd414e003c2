"""What a user may ask of a workload that is there: stop, resume, delete."""

import asyncio
from datetime import UTC, datetime

from torchyard.control.turn import turn
from torchyard.control.yard import Actor, Yard
from torchyard.domain.decision import Asked
from torchyard.domain.errors import Conflict, Invalid
from torchyard.domain.workload import Desired, Phase, Workload
from torchyard.store import audit
from torchyard.store.database import write


async def stop(yard: Yard, workload_id: str, actor: Actor, grace: float | None = None) -> Workload:
    """End it; it can be resumed. Raises Conflict when it has ended already."""
    if grace is not None and not 0 <= grace <= 86400:
        raise Invalid("grace must be between 0 and 86400 seconds")
    return await _ask(yard, workload_id, Asked(desired=Desired.STOPPED, by=actor.name, grace=grace), actor)


async def resume(yard: Yard, workload_id: str, actor: Actor) -> Workload:
    """Make a new attempt of a workload that has ended. Raises Conflict when it has not."""
    return await _ask(yard, workload_id, Asked(desired=Desired.RUNNING, by=actor.name), actor)


async def delete(yard: Yard, workload_id: str, actor: Actor) -> Workload:
    """End it, then forget it with its logs and code copies. Claims stay. Its name is free at once."""
    return await _ask(yard, workload_id, Asked(desired=Desired.DELETED, by=actor.name), actor)


async def _ask(yard: Yard, workload_id: str, asked: Asked, actor: Actor) -> Workload:
    async with turn(yard, workload_id) as mine:
        _refuse_nonsense(mine.workload, asked.desired)
        await mine.apply(asked)
        # Decided: it is carried out whether or not it can be written into the audit.
        yard.bell.ring(workload_id)
        yard.bell.queue.set()
        await asyncio.to_thread(_audit, yard, actor, asked.desired, mine.workload)
        return mine.workload


def _refuse_nonsense(workload: Workload, desired: Desired) -> None:
    name = workload.name
    if workload.desired is Desired.DELETED:
        if desired is not Desired.DELETED:
            raise Conflict(f"{name} is being deleted")
    elif desired is Desired.STOPPED and workload.phase.terminal:
        raise Conflict(f"{name} has ended already ({workload.phase.value})")
    elif desired is Desired.RUNNING and not (workload.phase.terminal and not workload.active):
        way_out = "wait until it has stopped" if workload.phase is Phase.STOPPING else "stop it first"
        raise Conflict(f"{name} has not ended ({workload.phase.value})", way_out)


def _audit(yard: Yard, actor: Actor, desired: Desired, workload: Workload) -> None:
    action = {Desired.STOPPED: "stop", Desired.RUNNING: "resume", Desired.DELETED: "delete"}[desired]
    with write(yard.database) as connection:
        audit.append(connection, actor.name, action, f"workload/{workload.name}", datetime.now(UTC))
