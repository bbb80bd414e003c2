"""Who owns workloads: departments, their projects, and clusters, as the API names them."""

from dataclasses import dataclass
from datetime import datetime

DEFAULT_ID = "1"
"""Of the first project and of the first department; both are there from the first start and stay."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Devices that workloads may hold together. None: no bound is set.

    Nobody uses more than what is deserved, so that a limit, which is never below it, bounds only where that is not set.
    """

    deserved: int | None = None
    limit: int | None = None

    @property
    def most(self) -> int | None:
        """The bound that counts; None: as many as there are."""
        return self.limit if self.deserved is None else self.deserved


UNBOUNDED = Quota()


@dataclass(frozen=True, slots=True, kw_only=True)
class Department:
    """Projects that share a quota. `id` is a numeric string."""

    id: str
    name: str
    created_at: datetime
    description: str = ""
    quota: Quota = UNBOUNDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project. `id` is a numeric string, as in Run:ai's org-unit API. On the local engine it is a folder."""

    id: str
    name: str
    created_at: datetime
    department_id: str = DEFAULT_ID
    description: str = ""
    namespace: str = ""
    """On Kubernetes; no other project has it."""
    quota: Quota = UNBOUNDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """An attached place where workloads run. `engine` names the code that drives it: local, fake."""

    id: str
    name: str
    engine: str
    created_at: datetime
