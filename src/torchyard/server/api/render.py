"""What would be launched for a spec: the plan, with nothing created."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from torchyard.control import submit
from torchyard.domain.spec import Kind
from torchyard.policy.permissions import Action, Resource
from torchyard.render.text import show
from torchyard.server.api.submissions import SubmitDistributed, submission_of
from torchyard.server.deps import ActorNow, YardNow, look, places_of
from torchyard.server.permit import in_project, somewhere
from torchyard.server.shapes import finding

router = APIRouter(tags=["workloads"])


class Render(SubmitDistributed):
    """A submission with its kind."""

    kind: Kind


@router.post("/render", operation_id="renderWorkload", dependencies=[somewhere(Resource.WORKLOADS, Action.CREATE)])
async def render(body: Render, yard: YardNow, actor: ActorNow) -> Response:
    """The launch plan of this spec: replicas, commands, environment, mounts."""
    await in_project(yard, actor, Resource.WORKLOADS, Action.CREATE, body.project_id)
    places = await look(yard, places_of)
    findings, plan = await submit.check(yard, submission_of(body.kind, body, places))
    return JSONResponse(show(plan) | {"findings": [finding(f) for f in findings]})
