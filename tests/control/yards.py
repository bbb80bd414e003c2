"""Servers' insides for tests: a yard on a real SQLite file and a fake world, and workloads to put into it."""

import uuid
from pathlib import Path
from typing import Any

from torchyard.control.submit import Request, submit
from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.spec import Submission
from torchyard.domain.workload import Workload
from torchyard.engines.engine import Engine
from torchyard.settings import Settings
from torchyard.store import clusters, projects
from torchyard.store.database import open_database, write
from torchyard.store.sealing import Sealer

ANN = Actor("ann")


def make_yard(data: Path, engine: Engine) -> Yard:
    """What a server that has just started has at hand."""
    database = open_database(data / "torchyard.db")
    with write(database) as connection:
        projects.ensure_default(connection, now())
        clusters.ensure_local(connection, now())
    settings = Settings.from_environment({"TORCHYARD_DATA": str(data), "HOME": str(data)})
    return Yard(
        settings=settings,
        database=database,
        engines={"local": engine},
        sealer=Sealer(data / "seal.key"),
        holder=f"test-{uuid.uuid4()}",
    )


def submission(name: str = "ddp", workers: int = 1, devices: int = 1, backoff: int = 0, **more: Any) -> Submission:
    """A distributed workload of `workers` + 1 replicas."""
    spec = {
        "command": "bash run.sh",
        "numWorkers": workers,
        "backoffLimit": backoff,
        "compute": {"gpuDevicesRequest": devices},
        **more.pop("spec", {}),
    }
    return Submission.model_validate({"kind": "distributed", "name": name, "spec": spec, "torchyard": more})


async def submit_one(yard: Yard, wanted: Submission, **environment: str) -> Workload:
    """Submit as ann."""
    request = Request(submission=wanted, environment=environment, idempotency_key=None)
    return (await submit(yard, request, ANN)).workload
