"""Quotas as the dialect says them: `resources` of a project or department, in and out. Knows no route."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from torchyard.domain.errors import Invalid, Problem
from torchyard.domain.model import Whole
from torchyard.domain.project import Quota
from torchyard.server.body import Body
from torchyard.server.shapes import Json

NODE_POOL_ID = "1"
NODE_POOL = "default"
MAX_DEVICES = 2**31 - 1

Amount = Annotated[Whole, Field(ge=-1, le=MAX_DEVICES)]
"""Whole devices; -1 means that no bound is set."""
Weight = Annotated[float, Field(ge=0)]


class Pool(Body):
    """A node pool. There is one so far."""

    id: Annotated[str, Field(max_length=64)] = NODE_POOL_ID
    name: Annotated[str, Field(max_length=63)] | None = None

    @model_validator(mode="after")
    def _known(self) -> "Pool":
        if self.id not in (NODE_POOL_ID, NODE_POOL) or self.name not in (None, NODE_POOL):
            raise ValueError(f"there is one node pool: id {NODE_POOL_ID}, name {NODE_POOL}")
        return self


class Devices(Body):
    """Devices that workloads may hold together. Nobody goes over quota, so that the weight has nothing to weigh."""

    deserved: Amount | None = None
    limit: Amount | None = None
    over_quota_weight: Weight | None = None

    @property
    def quota(self) -> Quota:
        """What counts of it. Raises ValueError for a limit below what is deserved."""
        deserved, limit = (None if value in (None, -1) else value for value in (self.deserved, self.limit))
        if deserved is not None and limit is not None and limit < deserved:
            raise ValueError(f"the limit of {limit} is less than the deserved {deserved}")
        return Quota(deserved, limit)

    @model_validator(mode="after")
    def _ordered(self) -> "Devices":
        assert self.quota
        return self


class Unbounded(Body):
    """Of something that has no quota here."""

    deserved: float | None = None
    limit: float | None = None
    over_quota_weight: Weight | None = None
    units: Literal["Mib", "MB", "GB"] | None = None

    @field_validator("deserved", "limit")
    @classmethod
    def _nothing(cls, value: float | None) -> float | None:
        if value not in (None, 0, -1):
            raise ValueError("quotas are of devices: leave the quota of cores and memory out")
        return value


class Resources(Body):
    """The quota in a node pool."""

    node_pool: Pool = Pool()
    gpu: Devices | None = None
    cpu: Unbounded | None = None
    memory: Unbounded | None = None
    priority: Annotated[str, Field(max_length=63)] | None = None

    @field_validator("priority")
    @classmethod
    def _none(cls, value: str | None) -> str | None:
        if value is not None:
            raise ValueError("has no effect: set priorityClass at the workload")
        return value


ResourceList = Annotated[list[Resources], Field(max_length=16)]


class Unit(Body):
    """What can be said of a project and of a department alike."""

    description: Annotated[str, Field(max_length=250)] | None = None
    resources: ResourceList
    """All there is: what it does not bound is not bounded any more."""
    default_node_pools: Annotated[list[Literal["default"]], Field(max_length=1)] | None = None


def quota_of(found: list[Resources]) -> Quota:
    """The quota that a list of resources sets; an empty one sets none. Raises Invalid for a node pool named twice."""
    if len(found) > 1:
        what = f"resources: node pool {NODE_POOL} is there {len(found)} times"
        raise Invalid(what, "name it once", (Problem("resources", "names a node pool twice", "max"),))
    return found[0].gpu.quota if found and found[0].gpu else Quota()


def patched(found: list[Resources]) -> Quota | None:
    """The quota that a patch sets; None: it says nothing of devices."""
    return quota_of(found) if any(one.gpu is not None for one in found) else None


def resources(quota: Quota) -> list[Json]:
    """A quota as a list of resources."""
    nothing = {"deserved": None, "limit": None, "overQuotaWeight": None}
    return [
        {
            "nodePool": {"id": NODE_POOL_ID, "name": NODE_POOL},
            "gpu": {"deserved": quota.deserved, "limit": quota.limit, "overQuotaWeight": None},
            "cpu": nothing,
            "memory": nothing | {"units": "MB"},
            "priority": None,
        }
    ]


def total(quota: Quota) -> Json:
    """A quota over all node pools; null where no bound is set."""
    return {"gpuQuota": quota.deserved, "cpuQuota": None, "memoryQuota": None}
