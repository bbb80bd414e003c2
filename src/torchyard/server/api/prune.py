"""Give disk space back: logs, attempts and code copies that nobody needs any more."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response

from torchyard.control import prune
from torchyard.domain.quantities import parse_duration
from torchyard.server.body import Body
from torchyard.server.deps import YardNow

router = APIRouter(tags=["server"])


class Prune(Body):
    """What to give back: of workloads that have been over for longer than this; the retention setting when left out."""

    older_than: Annotated[str, Field(max_length=40)] | Annotated[float, Field(ge=0)] | None = None
    dry_run: bool = False


@router.post("/prune", operation_id="prune")
async def run(body: Prune, yard: YardNow) -> Response:
    """Delete what is old, or say what would be deleted."""
    older = parse_duration(body.older_than) if isinstance(body.older_than, str) else body.older_than
    done = await prune.prune(yard, older, body.dry_run)
    return JSONResponse({"workloads": done.workloads, "bytes": done.bytes, "sentence": done.sentence})
