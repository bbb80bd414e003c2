"""Folders of code that travel to replicas: kept by content, sent once."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from torchyard.control import code
from torchyard.policy.permissions import Action, Resource
from torchyard.server.deps import YardNow
from torchyard.server.permit import somewhere

router = APIRouter(tags=["code"])


@router.post(
    "/code",
    status_code=201,
    operation_id="putCode",
    dependencies=[somewhere(Resource.WORKLOADS, Action.CREATE, trusted=True)],
)
async def put(request: Request, yard: YardNow) -> Response:
    """Keep a folder, sent as tar.gz in the raw body. The answer is its name: `sha256:...`."""
    return JSONResponse({"code": await code.keep(yard, request.stream())}, status_code=201)


@router.head(
    "/code/{digest}", operation_id="hasCode", dependencies=[somewhere(Resource.WORKLOADS, Action.CREATE, trusted=True)]
)
async def has(digest: str, yard: YardNow) -> Response:
    """200 when this folder is kept already, else 404."""
    there = await code.has(yard, digest if digest.startswith("sha256:") else f"sha256:{digest}")
    return Response(status_code=200 if there else 404)
