"""Runs a command beside the ranks of a running replica."""

from torchyard.control import read
from torchyard.control.yard import Yard
from torchyard.domain.errors import Conflict, Invalid, NotFound
from torchyard.domain.observation import ReplicaState
from torchyard.engines.engine import Exec


async def open_exec(
    yard: Yard,
    workload_id: str,
    replica: str | None,
    argv: tuple[str, ...],
    tty: bool,
    rows: int = 24,
    columns: int = 80,
) -> Exec:
    """Start it. Raises Conflict when the replica does not run."""
    if not argv:
        raise Invalid("say what to run", "torchyard exec NAME -- COMMAND")
    workload = await read.get(yard, workload_id)
    name = replica or workload.submission.replicas[0]
    if name not in workload.submission.replicas:
        raise NotFound(
            f"{workload.name} has no replica {name!r}", f"replicas: {', '.join(workload.submission.replicas)}"
        )
    attempt = workload.attempt
    if attempt is None or attempt.over or attempt.handle is None:
        raise Conflict(f"{workload.name} does not run ({workload.phase.value})", "exec needs a running replica")
    engine = yard.engine(workload.cluster)
    observation = await engine.observe(attempt.handle)
    seen = next((r for r in observation.replicas if r.name == name), None)
    if seen is None or seen.state is not ReplicaState.RUNNING:
        raise Conflict(f"replica {name} of {workload.name} does not run", "exec needs a running replica")
    return await engine.exec(attempt.handle, name, argv, tty, rows, columns)
