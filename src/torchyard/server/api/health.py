"""Is it there? The one answer that needs no token."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from torchyard import __version__

router = APIRouter(tags=["health"])


@router.get("/health", operation_id="getHealth")
async def health() -> Response:
    """The server answers, and which version it is."""
    return JSONResponse({"status": "ok", "version": __version__})
