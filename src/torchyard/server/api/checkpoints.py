"""Checkpoints of a workload: what there is, whether it is whole, and its bytes."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from torchyard.control import checkpoints, read
from torchyard.control.checkpoints import Checkpoint
from torchyard.policy.permissions import Action, Resource
from torchyard.server.api.files import Path, download
from torchyard.server.deps import YardNow
from torchyard.server.permit import there
from torchyard.server.shapes import Json, moment

router = APIRouter(prefix="/workloads", tags=["checkpoints"])

ClaimName = Annotated[str | None, Query(max_length=4096)]


@router.get(
    "/{workload_id}/checkpoints", operation_id="listCheckpoints", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def listing(workload_id: str, yard: YardNow) -> Response:
    """Checkpoints that the workload can see, the newest first; their structure is checked."""
    found = await checkpoints.listing(yard, await read.get(yard, workload_id))
    return JSONResponse({"checkpoints": [_checkpoint(one) for one in found]})


@router.post(
    "/{workload_id}/checkpoints/verify",
    operation_id="verifyCheckpoints",
    dependencies=[there(Resource.WORKLOADS, Action.READ)],
)
async def verify(workload_id: str, yard: YardNow) -> Response:
    """The same list with every byte read and checked."""
    found = await checkpoints.listing(yard, await read.get(yard, workload_id), deep=True)
    return JSONResponse({"checkpoints": [_checkpoint(one) for one in found]})


@router.get(
    "/{workload_id}/checkpoints/content",
    operation_id="downloadCheckpoint",
    dependencies=[there(Resource.FILES, Action.READ, trusted=True)],
)
async def content(workload_id: str, yard: YardNow, path: Path, claim: ClaimName = None) -> Response:
    """The bytes of one checkpoint file."""
    workload = await read.get(yard, workload_id)
    reader, size = await checkpoints.open_checkpoint(yard, workload, path, claim)
    return download(reader, size)


def _checkpoint(c: Checkpoint) -> Json:
    return {
        "claim": c.claim,
        "path": c.path,
        "size": c.size,
        "modifiedAt": moment(c.modified_at),
        "complete": c.complete,
        "problem": c.problem,
        "format": c.format,
        "attempt": c.attempt,
    }
