"""The page at `/`: workloads as they are now, and the log-in by one-time code. Knows rows, not workloads."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from torchyard import __version__
from torchyard.control import access
from torchyard.control.yard import Yard
from torchyard.policy.permissions import Action, Place, Resource, allows
from torchyard.server.api.workloads import all_changes, newest
from torchyard.server.auth import COOKIE, SESSION_SECONDS
from torchyard.server.deps import DoorkeeperNow, YardNow, events, look
from torchyard.server.permit import organisation
from torchyard.server.shapes import Json
from torchyard.server.stream import EventStream, Sent
from torchyard.store import workloads
from torchyard.store.workloads import WorkloadQuery

ROOM = Path(__file__).parent
STATIC = ROOM / "static"
SHOWN = 100
"""Rows of the page, the newest workloads."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

EVERY_WORKLOAD = organisation(Resource.WORKLOADS, Action.READ)

router = APIRouter(include_in_schema=False)
templates = Environment(
    loader=FileSystemLoader(ROOM / "templates"), autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True
)


@router.get("/")
async def page(
    request: Request,
    yard: YardNow,
    doorkeeper: DoorkeeperNow,
    code: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """The workloads; with a fresh code a session first; else how to get in."""
    if code is not None and (session := doorkeeper.redeem(code)) is not None:
        return _enter(request, session)
    actor = request.state.actor
    if actor is None or not allows(await access.grants_of(yard, actor), Resource.WORKLOADS, Action.READ, Place()):
        return HTMLResponse(templates.get_template("door.html").render(stale=code is not None), 401, HEADERS)
    shown, total = await look(yard, lambda c: (newest(c, yard, SHOWN), workloads.page(c, WorkloadQuery(limit=1)).total))
    html = templates.get_template("workloads.html").render(
        rows=[view(row) for row in shown],
        total=total,
        user=actor.name,
        version=__version__,
    )
    return HTMLResponse(html, headers=HEADERS)


@router.get("/live", dependencies=[EVERY_WORKLOAD])
async def live(request: Request, yard: YardNow) -> EventStream:
    """Rows of the page as HTML, as they change."""
    return events(request, yard, _live(yard))


def view(row: Json) -> Json:
    """A row of the API with what the page shows of it besides."""
    progress = row["progress"] or {}
    return row | {"step": progress.get("step"), "steps": progress.get("total"), "unit": progress.get("unit")}


def _enter(request: Request, session: str) -> Response:
    # The code goes from the address bar, and from the history with it.
    response = RedirectResponse("/", 303, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, session, SESSION_SECONDS, httponly=True, samesite="strict", secure=secure)
    return response


async def _live(yard: Yard) -> AsyncGenerator[Sent, None]:
    template = templates.get_template("row.html")
    async for change in all_changes(yard):
        if change.event == "workload":
            yield Sent("row", {"id": change.data["id"], "html": template.render(w=view(dict(change.data)))})
        else:
            yield Sent("gone", change.data)
