"""Data sources: storage that workloads mount. A claim (pvc) is the first of them."""

from dataclasses import dataclass
from datetime import datetime

from torchyard.domain.storage import ClaimInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A persistent volume claim of a project. Specs name it by `claim_name`; `path` is its usual mount point."""

    id: str
    name: str
    claim_name: str
    project: str
    path: str
    info: ClaimInfo
    created_at: datetime
    created_by: str
    description: str = ""
    read_only: bool = False
    updated_at: datetime | None = None
    """None: it is as it was made."""
    updated_by: str | None = None
