"""Files of a claim: list, read, write, remove. Bytes pass through; nothing is held whole."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from torchyard.control import claims
from torchyard.domain.errors import Invalid
from torchyard.domain.observation import FileEntry
from torchyard.engines.engine import FileReader
from torchyard.policy.permissions import Action, Resource
from torchyard.server.deps import YardNow
from torchyard.server.permit import there
from torchyard.server.shapes import Json, moment

router = APIRouter(prefix="/asset/datasource/pvc", tags=["files"])

CHUNK = 256 * 1024
Path = Annotated[str, Query(max_length=4096)]


@router.get(
    "/{claim_id}/files", operation_id="listClaimFiles", dependencies=[there(Resource.FILES, Action.READ, trusted=True)]
)
async def listing(claim_id: str, yard: YardNow, path: Path = "") -> Response:
    """One folder of the claim, or the file itself."""
    claim = await claims.get(yard, claim_id)
    found = await claims.files(yard, claim, clean(path))
    return JSONResponse({"entries": [_entry(entry) for entry in found]})


@router.get(
    "/{claim_id}/files/content",
    operation_id="downloadClaimFile",
    dependencies=[there(Resource.FILES, Action.READ, trusted=True)],
)
async def read(claim_id: str, yard: YardNow, path: Path) -> Response:
    """The bytes of a file."""
    claim = await claims.get(yard, claim_id)
    reader, size = await claims.open_file(yard, claim, clean(path))
    return download(reader, size)


@router.put(
    "/{claim_id}/files/content",
    status_code=204,
    operation_id="uploadClaimFile",
    dependencies=[there(Resource.FILES, Action.UPDATE, trusted=True)],
)
async def write(claim_id: str, yard: YardNow, path: Path, request: Request) -> Response:
    """Write a file from the raw body; it appears whole or not at all."""
    claim = await claims.get(yard, claim_id)
    await claims.put_file(yard, claim, clean(path), request.stream())
    return Response(status_code=204)


@router.delete(
    "/{claim_id}/files/content",
    status_code=204,
    operation_id="deleteClaimFile",
    dependencies=[there(Resource.FILES, Action.DELETE, trusted=True)],
)
async def remove(claim_id: str, yard: YardNow, path: Path) -> Response:
    """Delete a file or folder."""
    claim = await claims.get(yard, claim_id)
    await claims.remove_file(yard, claim, clean(path))
    return Response(status_code=204)


def clean(path: str) -> str:
    """The path below the claim's root. Raises Invalid for what no file is called, and for a way out of the claim."""
    if "\0" in path or any("\ud800" <= letter <= "\udfff" for letter in path):
        raise Invalid("path: this is no path of a file")
    if ".." in path.split("/"):
        raise Invalid("path: leads out of the claim", "write it from the claim's root, without ..")
    return path.strip("/")


def download(reader: FileReader, size: int) -> Response:
    """A file as a response. The size is that of the moment it was opened."""
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": "attachment",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(_chunks(reader, size), media_type="application/octet-stream", headers=headers)


async def _chunks(reader: FileReader, size: int) -> AsyncGenerator[bytes, None]:
    try:
        left = size
        while left:
            chunk = await asyncio.to_thread(reader.read, min(CHUNK, left))
            if not chunk:
                return
            left -= len(chunk)
            yield chunk
    finally:
        reader.close()


def _entry(e: FileEntry) -> Json:
    return {"path": e.path, "folder": e.folder, "size": e.size, "modifiedAt": moment(e.modified_at)}
