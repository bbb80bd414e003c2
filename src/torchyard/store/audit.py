"""Who did what."""

from datetime import datetime

from sqlalchemy import Connection, insert

from torchyard.store.moments import to_text
from torchyard.store.tables import audit as table


def append(c: Connection, actor: str, action: str, object_: str, at: datetime) -> None:
    """One line of the audit log."""
    c.execute(insert(table).values(at=to_text(at), actor=actor, action=action, object=object_))
