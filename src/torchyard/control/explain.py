"""Why is it not running? Collects the facts and lets diagnosis say it."""

import asyncio

from torchyard.control import checkpoints, read
from torchyard.control.turn import now
from torchyard.control.yard import Yard
from torchyard.diagnosis.explain import explain as say
from torchyard.domain.verdict import Verdict


async def explain(yard: Yard, workload_id: str) -> Verdict:
    """The verdict on a workload. Raises NotFound."""
    workload = await read.get(yard, workload_id)
    history, progress, found = await asyncio.gather(
        read.attempts_of(yard, workload_id),
        read.progress_of(yard, (workload_id,)),
        checkpoints.listing(yard, workload),
    )
    whole = [c for c in found if c.complete and c.attempt is not None]
    newest = max(whole, key=lambda c: c.modified_at, default=None)
    return say(
        workload,
        attempts=history,
        progress=progress.get(workload_id),
        newest_checkpoint=(newest.path, newest.modified_at) if newest else None,
        now=now(),
    )
