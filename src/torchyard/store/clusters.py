"""Attached clusters. `local` is there from the first start."""

import uuid
from datetime import datetime

from sqlalchemy import Connection, insert, select

from torchyard.domain.project import Cluster
from torchyard.store.moments import from_text, to_text
from torchyard.store.tables import clusters as table

LOCAL = "local"


def ensure_local(c: Connection, now: datetime) -> None:
    """Remember this machine as a cluster if it is not there."""
    if all(cluster.name != LOCAL for cluster in listing(c)):
        c.execute(insert(table).values(id=str(uuid.uuid4()), name=LOCAL, engine="local", created_at=to_text(now)))


def listing(c: Connection) -> tuple[Cluster, ...]:
    """All clusters by name."""
    rows = c.execute(select(table).order_by(table.c.name))
    return tuple(Cluster(id=r.id, name=r.name, engine=r.engine, created_at=from_text(r.created_at)) for r in rows)
