"""Who owns workloads: projects and clusters as the API names them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project. `id` is a numeric string, as in Run:ai's org-unit API. On the local engine it is a folder."""

    id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """An attached place where workloads run. `engine` names the code that drives it: local, fake."""

    id: str
    name: str
    engine: str
    created_at: datetime
