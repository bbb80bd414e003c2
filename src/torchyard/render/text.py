"""A launch plan as plain values for people: what `torchyard render` prints. Secrets are masked."""

from typing import Any

from torchyard.domain.launch import LaunchPlan, ReplicaPlan
from torchyard.domain.quantities import show_size
from torchyard.domain.spec import SEALED, looks_secret


def show(plan: LaunchPlan) -> dict[str, Any]:
    """The plan in the order in which it is read; what is not set is left out."""
    shown = {
        "workload": plan.workload,
        "project": plan.project,
        "attempt": plan.attempt,
        "isolation": plan.isolation.value,
        "code": plan.code,
        "ranks": plan.ranks,
        "devices": plan.devices,
        "gracePeriod": f"{plan.grace:g}s",
        "replicas": [_replica(replica) for replica in plan.replicas],
        "notes": list(plan.notes),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _replica(replica: ReplicaPlan) -> dict[str, Any]:
    shown = {
        "name": replica.name,
        "image": replica.image,
        "command": list(replica.argv),
        "workingDir": replica.workdir,
        "ranks": replica.nproc,
        "devices": replica.devices,
        "mounts": [
            {"claim": mount.claim, "path": mount.path, **({"readOnly": True} if mount.read_only else {})}
            for mount in replica.mounts
        ],
        "scratch": [
            {
                "path": s.path,
                "medium": "memory" if s.memory else "disk",
                **({"size": show_size(s.size)} if s.size else {}),
            }
            for s in replica.scratch
        ],
        "sharedMemory": show_size(replica.shm) if replica.shm is not None else None,
        "environment": {name: _masked(name, value) for name, value in sorted(replica.env.items())},
    }
    return {name: value for name, value in shown.items() if value is not None and value != []}


def _masked(name: str, value: str) -> str:
    return SEALED if looks_secret(name) else value
