"""What there is to choose from: storage classes, node pools, priorities and types of workloads."""

import uuid
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from torchyard.control.yard import Yard
from torchyard.domain.project import Cluster
from torchyard.domain.spec import Kind
from torchyard.policy.permissions import Action, Resource
from torchyard.policy.queue import PRIORITIES, PRIORITY
from torchyard.server.api.submissions import Id
from torchyard.server.deps import YardNow, cluster_of, look, missing, places_of
from torchyard.server.permit import SELF, somewhere
from torchyard.server.shapes import TENANT_ID, Json, moment

router = APIRouter(tags=["catalogue"])
storage = APIRouter(tags=["catalogue"])

CATEGORIES = {Kind.TRAINING: "Train", Kind.DISTRIBUTED: "Train", Kind.WORKSPACE: "Build"}
POOL = "default"
FOLDERS = "local-folders"
"""The storage class of a local cluster."""

SEE_NODES = somewhere(Resource.NODES, Action.READ)


@storage.get(
    "/v2/storage-classes",
    operation_id="listStorageClasses",
    dependencies=[somewhere(Resource.DATA_SOURCES, Action.READ)],
)
async def storage_classes(cluster_id: Annotated[Id, Query(alias="clusterId")], yard: YardNow) -> Response:
    """What claims of a cluster can be made of."""
    cluster = cluster_of(await look(yard, places_of), cluster_id)
    spec = {"provisioner": "torchyard", "allowVolumeExpansion": True, "isDefault": True}
    return JSONResponse({"items": [{"clusterId": cluster.id, "storageClassName": FOLDERS, "spec": spec}]})


@router.get("/node-pools", operation_id="listNodePools", dependencies=[SEE_NODES])
async def node_pools(yard: YardNow) -> Response:
    """Groups of nodes: one for each cluster so far, with all of its nodes."""
    return JSONResponse({"nodepools": await _pools(yard)})


@router.get("/node-pools/count", operation_id="countNodePools", dependencies=[SEE_NODES])
async def count(yard: YardNow) -> Response:
    """How many node pools there are."""
    return JSONResponse({"count": len(await _pools(yard))})


@router.get("/node-pools/{pool_id}", operation_id="getNodePool", dependencies=[SEE_NODES])
async def node_pool(pool_id: str, yard: YardNow) -> Response:
    """One node pool."""
    found = next((pool for pool in await _pools(yard) if pool["id"] == pool_id), None)
    if found is None:
        raise missing("node pool", pool_id, "see /api/v1/node-pools")
    return JSONResponse(found)


@router.get("/workload-priorities", operation_id="listWorkloadPriorities", dependencies=[SELF])
async def priorities() -> Response:
    """What `priorityClass` may be; a higher value goes first."""
    shown = [{"id": _id(p), "name": p, "value": 10 * n, "source": "System"} for n, p in enumerate(PRIORITIES, start=1)]
    return JSONResponse({"priorities": shown})


@router.get("/workload-types", operation_id="listWorkloadTypes", dependencies=[SELF])
async def types() -> Response:
    """The kinds of workloads, and the priority of those that name none."""
    return JSONResponse(
        {
            "types": [
                {
                    "id": _id(kind),
                    "name": kind.value,
                    "group": "torchyard",
                    "categoryId": _id(category),
                    "categoryName": category,
                    "priorityId": _id(PRIORITY),
                    "priorityName": PRIORITY,
                }
                for kind, category in CATEGORIES.items()
            ]
        }
    )


@router.get("/workload-categories", operation_id="listWorkloadCategories", dependencies=[SELF])
async def categories() -> Response:
    """What workloads are for."""
    names = dict.fromkeys(CATEGORIES.values())
    return JSONResponse({"categories": [{"id": _id(name), "name": name, "description": ""} for name in names]})


async def _pools(yard: Yard) -> list[Json]:
    places = await look(yard, places_of)
    return [await _pool(yard, cluster) for cluster in places.clusters.values() if cluster.name in yard.engines]


async def _pool(yard: Yard, cluster: Cluster) -> Json:
    nodes = await yard.engine(cluster.name).nodes()
    kinds = {device.kind for node in nodes for device in node.devices} - {"cpu"}
    return {
        "id": _id(f"pool of {cluster.id}"),
        "name": POOL,
        "labelKey": "",
        "labelValue": "",
        "clusterId": cluster.id,
        "clusterName": cluster.name,
        "tenantId": TENANT_ID,
        "placementStrategy": {"cpu": "binpack", "gpu": "binpack"},
        "overProvisioningRatio": 1,
        "gpuResource": "nvidia.com/gpu" if kinds else "cpu",
        "phase": "Ready" if nodes else "Empty",
        "status": {"nodes": [node.name for node in nodes]},
        "isDefault": True,
        "createdBy": "torchyard",
        "createdAt": moment(cluster.created_at),
        "updatedBy": "torchyard",
        "updatedAt": moment(cluster.created_at),
    }


def _id(name: str) -> str:
    """The same for the same name, everywhere and always."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"torchyard:{name}"))
