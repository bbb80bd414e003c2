"""Where work can go and who asks: clusters, nodes, me."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from torchyard import __version__
from torchyard.domain.observation import Device, Node
from torchyard.domain.project import Cluster
from torchyard.policy.permissions import Action, Resource
from torchyard.server.deps import ActorNow, YardNow, look, places_of
from torchyard.server.permit import SELF, somewhere
from torchyard.server.shapes import TENANT_ID, Json, moment

router = APIRouter(tags=["organisation"])


@router.get("/clusters", operation_id="listClusters", dependencies=[somewhere(Resource.CLUSTERS, Action.READ)])
async def clusters(yard: YardNow) -> Response:
    """All attached clusters."""
    places = await look(yard, places_of)
    return JSONResponse([_cluster(c, c.name in yard.engines) for c in places.clusters.values()])


@router.get("/nodes", operation_id="listNodes", dependencies=[somewhere(Resource.NODES, Action.READ)])
async def nodes(yard: YardNow) -> Response:
    """Machines, their devices, and who holds each."""
    places = await look(yard, places_of)
    shown: list[Json] = []
    for name, engine in yard.engines.items():
        if name in places.clusters:
            shown += [_node(node, places.clusters[name]) for node in await engine.nodes()]
    return JSONResponse({"nodes": shown})


@router.get("/me", operation_id="getMe", dependencies=[SELF])
async def me(actor: ActorNow) -> Response:
    """Who the server takes the caller for."""
    return JSONResponse({"id": actor.id, "username": actor.name, "kind": "user", "version": __version__})


def _cluster(c: Cluster, connected: bool) -> Json:
    return {
        "uuid": c.id,
        "tenantId": TENANT_ID,
        "name": c.name,
        "engine": c.engine,
        "createdAt": moment(c.created_at),
        "version": __version__,
        "status": {"state": "Connected" if connected else "Disconnected"},
    }


def _node(n: Node, c: Cluster) -> Json:
    gpus = [device for device in n.devices if device.kind != "cpu"]
    return {
        "id": n.name,
        "name": n.name,
        "status": "Ready",
        "nodePool": "default",
        "clusterUuid": c.id,
        "gpuInfo": {"gpuType": gpus[0].kind if gpus else "", "gpuCount": len(gpus)},
        "cpuCores": n.cpu_cores,
        "memory": n.memory,
        "devices": [_device(device) for device in n.devices],
        "createdAt": moment(c.created_at),
        "updatedAt": None,
    }


def _device(d: Device) -> Json:
    return {
        "index": d.index,
        "free": d.free,
        "ours": d.ours,
        "heldBy": d.held_by,
        "workload": d.workload,
        "heldSince": moment(d.held_since),
    }
