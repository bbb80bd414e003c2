"""Looks after the data folder: warns before its disk is full, and forgets what is older than the retention."""

import asyncio
import logging
import shutil

from torchyard.control.prune import prune
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import TorchyardError
from torchyard.domain.finding import Finding, Severity
from torchyard.domain.quantities import show_size

INTERVAL = 3600.0
SELF = Actor("torchyard")

log = logging.getLogger("torchyard.housekeeping")


async def keep_house(yard: Yard) -> None:
    """Until cancelled, once an hour."""
    while True:
        warning = await asyncio.to_thread(disk_warning, yard)
        if warning is not None:
            log.warning("%s; %s", warning.message, warning.fix)
        try:
            done = await prune(yard, yard.settings.retention_days * 86400, dry_run=False, actor=SELF)
            if done.workloads:
                log.info("%s", done.sentence)
        except (TorchyardError, OSError):
            log.exception("old workloads could not be forgotten; trying again in an hour")
        await asyncio.sleep(INTERVAL)


def disk_warning(yard: Yard) -> Finding | None:
    """A warning when little of the data folder's disk is free."""
    data = yard.settings.data
    free = shutil.disk_usage(data).free
    if free >= yard.settings.disk_reserve_gb * 1e9:
        return None
    return Finding(
        rule="disk-nearly-full",
        severity=Severity.WARNING,
        where="cluster",
        message=f"the disk of {data} has only {show_size(free)} left: logs and checkpoints may be lost",
        fix="free space, or forget old workloads with `torchyard server prune`",
    )
