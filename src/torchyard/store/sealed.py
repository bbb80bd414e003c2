"""Sealed environments of workloads: bytes that only the sealer can open."""

from sqlalchemy import Connection, delete, insert, select

from torchyard.store.tables import sealed as table


def put(c: Connection, workload_id: str, blob: bytes) -> None:
    """Keep it, in the place of an older one."""
    c.execute(delete(table).where(table.c.workload_id == workload_id))
    c.execute(insert(table).values(workload_id=workload_id, blob=blob))


def fetch(c: Connection, workload_id: str) -> bytes | None:
    """The sealed bytes."""
    row = c.execute(select(table.c.blob).where(table.c.workload_id == workload_id)).first()
    return None if row is None else bytes(row.blob)


def remove(c: Connection, workload_id: str) -> None:
    """Nobody will need it again."""
    c.execute(delete(table).where(table.c.workload_id == workload_id))
