"""Lets a browser in: a code that opens the page once."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from torchyard.policy.permissions import Action, Resource
from torchyard.server.auth import CODE_SECONDS
from torchyard.server.deps import DoorkeeperNow
from torchyard.server.permit import organisation

router = APIRouter(tags=["server"])


@router.post(
    "/ui/code",
    status_code=201,
    operation_id="createUiCode",
    dependencies=[organisation(Resource.SERVER, Action.UPDATE, trusted=True)],
)
async def mint(request: Request, doorkeeper: DoorkeeperNow) -> Response:
    """A link that opens the page once, within a minute."""
    code = doorkeeper.mint_code()
    url = f"{request.base_url}?code={code}"
    return JSONResponse({"code": code, "url": url, "expiresIn": CODE_SECONDS}, status_code=201)
