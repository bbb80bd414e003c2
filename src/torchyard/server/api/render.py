"""What would be launched for a spec: the plan, with nothing created."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from torchyard.control import submit
from torchyard.domain.launch import LaunchPlan, ReplicaPlan
from torchyard.domain.spec import Kind
from torchyard.server.api.submissions import SubmitDistributed, submission_of
from torchyard.server.deps import YardNow, look, places_of
from torchyard.server.shapes import Json, finding

router = APIRouter(tags=["workloads"])


class Render(SubmitDistributed):
    """A submission with its kind."""

    kind: Kind


@router.post("/render", operation_id="renderWorkload")
async def render(body: Render, yard: YardNow) -> Response:
    """The launch plan of this spec: replicas, commands, environment, mounts."""
    places = await look(yard, places_of)
    findings, plan = await submit.check(yard, submission_of(body.kind, body, places))
    return JSONResponse(_plan(plan) | {"findings": [finding(f) for f in findings]})


def _plan(plan: LaunchPlan) -> Json:
    return {
        "workload": plan.workload,
        "project": plan.project,
        "isolation": plan.isolation,
        "ranks": plan.ranks,
        "devices": plan.devices,
        "code": plan.code,
        "grace": plan.grace,
        "notes": list(plan.notes),
        "replicas": [_replica(replica) for replica in plan.replicas],
    }


def _replica(r: ReplicaPlan) -> Json:
    return {
        "name": r.name,
        "nodeRank": r.node_rank,
        "argv": list(r.argv),
        "env": r.env,
        "nproc": r.nproc,
        "devices": r.devices,
        "workdir": r.workdir,
        "image": r.image,
        "shm": r.shm,
        "mounts": [{"claim": m.claim, "path": m.path, "readOnly": m.read_only} for m in r.mounts],
        "scratch": [{"path": s.path, "memory": s.memory, "size": s.size} for s in r.scratch],
    }
