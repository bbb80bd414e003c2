"""Give disk space back: logs, attempts and code copies that nobody needs any more."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response

from torchyard.control import prune
from torchyard.domain.quantities import parse_duration
from torchyard.policy.permissions import Action, Resource
from torchyard.server.body import Body
from torchyard.server.deps import ActorNow, YardNow
from torchyard.server.permit import organisation

router = APIRouter(tags=["server"])


MOST = 100 * 365 * 86400.0
"""Seconds; older than a century is nothing."""


class Prune(Body):
    """What to give back: of workloads that have been over for longer than this; the retention setting when left out."""

    older_than: Annotated[str, Field(max_length=40)] | Annotated[float, Field(ge=0)] | None = None
    dry_run: bool = False


@router.post("/prune", operation_id="prune", dependencies=[organisation(Resource.SERVER, Action.UPDATE)])
async def run(body: Prune, yard: YardNow, actor: ActorNow) -> Response:
    """Delete what is old, or say what would be deleted."""
    match body.older_than:
        case None:
            seconds = yard.settings.retention_days * 86400
        case str(text):
            seconds = parse_duration(text)
        case number:
            seconds = number
    done = await prune.prune(yard, min(seconds, MOST), body.dry_run, actor)
    return JSONResponse({"workloads": list(done.workloads), "bytes": done.bytes, "sentence": done.sentence})
