"""Workloads of all kinds: list, count, show; pods, attempts, events, history, progress; changes as they happen."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence, Sized
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from torchyard.control import access, read
from torchyard.control.feed import Subscription
from torchyard.control.yard import Yard
from torchyard.domain.errors import NotFound
from torchyard.domain.workload import Workload
from torchyard.policy.permissions import Action, Resource
from torchyard.server import shapes
from torchyard.server.deps import ActorNow, Limit, Offset, YardNow, events, look, now, places_of
from torchyard.server.permit import somewhere, there
from torchyard.server.query import FilterBy, Search, SortBy, SortOrder, parse_filters
from torchyard.server.shapes import Json, Places
from torchyard.server.stream import EventStream, Sent
from torchyard.store import workloads as workload_store
from torchyard.store.workloads import Filter, WorkloadQuery

router = APIRouter(prefix="/workloads", tags=["workloads"])

LastEventId = Annotated[str | None, Header(max_length=64)]

PAGE_ROWS = 100
"""Rows that the stream of all workloads begins with."""
MAX_EVENTS = 1000
MAX_SEEN = 2**31
BREATH = 0.2
"""Seconds between two looks of one stream at the store."""


@router.get("", operation_id="listWorkloads", dependencies=[somewhere(Resource.WORKLOADS, Action.READ)])
async def listing(
    yard: YardNow,
    actor: ActorNow,
    filter_by: FilterBy,
    offset: Offset = 0,
    limit: Limit = 50,
    sort_by: SortBy = "createdAt",
    sort_order: SortOrder = "desc",
    search: Search = None,
    deleted: bool = False,
) -> Response:
    """A page of workloads, the newest first unless asked otherwise."""
    query = WorkloadQuery(
        offset=offset,
        limit=limit,
        sort_by=sort_by,
        descending=sort_order == "desc",
        filters=await _filters(yard, filter_by),
        search=search,
        deleted=deleted,
        projects=await access.visible_projects(yard, actor, Resource.WORKLOADS),
    )
    return Response(await look(yard, partial(_page, yard=yard, query=query)), media_type="application/json")


@router.get("/count", operation_id="countWorkloads", dependencies=[somewhere(Resource.WORKLOADS, Action.READ)])
async def count(
    yard: YardNow, actor: ActorNow, filter_by: FilterBy, search: Search = None, deleted: bool = False
) -> Response:
    """How many workloads there are."""
    query = WorkloadQuery(
        limit=1,
        filters=await _filters(yard, filter_by),
        search=search,
        deleted=deleted,
        projects=await access.visible_projects(yard, actor, Resource.WORKLOADS),
    )
    return JSONResponse({"count": (await look(yard, partial(workload_store.page, query=query))).total})


@router.get("/stream", operation_id="streamWorkloads", dependencies=[somewhere(Resource.WORKLOADS, Action.READ)])
async def streamall_changes(yard: YardNow, actor: ActorNow, request: Request) -> EventStream:
    """The newest workloads, then each one as it changes: `workload` (a row) and `deleted` ({id})."""
    seen = await access.visible_projects(yard, actor, Resource.WORKLOADS)
    return events(request, yard, all_changes(yard, seen))


@router.get("/{workload_id}", operation_id="getWorkload", dependencies=[there(Resource.WORKLOADS, Action.READ)])
async def get(workload_id: str, yard: YardNow) -> Response:
    """A workload with its spec, findings and attempts."""
    workload = await read.get(yard, workload_id)
    known = await read.progress_of(yard, (workload_id,))
    shown = shapes.detail(
        workload,
        known.get(workload_id),
        await read.attempts_of(yard, workload_id),
        await look(yard, places_of),
        now(),
    )
    return JSONResponse(shown | {"exitCode": read.exit_code(workload)})


@router.get(
    "/{workload_id}/pods", operation_id="getWorkloadPods", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def pods(workload_id: str, yard: YardNow) -> Response:
    """The replicas of the attempt of now, as pods."""
    workload = await read.get(yard, workload_id)
    return JSONResponse({"pods": shapes.pods(workload, await look(yard, places_of))})


@router.get(
    "/{workload_id}/attempts", operation_id="getWorkloadAttempts", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def attempts(workload_id: str, yard: YardNow) -> Response:
    """Every launch of it with replicas and ranks, the first one first."""
    await read.get(yard, workload_id)
    found = await read.attempts_of(yard, workload_id)
    return JSONResponse({"attempts": [shapes.attempt(a) for a in found]})


@router.get(
    "/{workload_id}/events", operation_id="getWorkloadEvents", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def event_listing(
    workload_id: str,
    yard: YardNow,
    offset: Offset = 0,
    limit: Limit = 50,
    sort_order: SortOrder = "desc",
) -> Response:
    """What happened to it, the newest first unless asked otherwise."""
    workload = await read.get(yard, workload_id)
    places = await look(yard, places_of)
    found = await read.events_of(yard, workload_id, offset, limit + 1, sort_order == "desc")
    shown = [shapes.event(event, number, workload, places) for number, event in found[:limit]]
    return JSONResponse({"events": shown, "next": _next(found, offset, limit)})


@router.get(
    "/{workload_id}/history", operation_id="getWorkloadHistory", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def history(workload_id: str, yard: YardNow, offset: Offset = 0, limit: Limit = 50) -> Response:
    """Events and changes of phase in one list, the newest first."""
    workload = await read.get(yard, workload_id)
    places = await look(yard, places_of)
    found = await read.events_of(yard, workload_id, offset, limit + 1, newest_first=True)
    shown = [shapes.record(event, number, workload, places) for number, event in found[:limit]]
    return JSONResponse({"records": shown, "next": _next(found, offset, limit)})


@router.get(
    "/{workload_id}/progress", operation_id="getWorkloadProgress", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def progress(workload_id: str, yard: YardNow) -> Response:
    """How far training is, read from its log; null where the log does not say."""
    await read.get(yard, workload_id)
    known = await read.progress_of(yard, (workload_id,))
    return JSONResponse({"progress": shapes.progress(known.get(workload_id))})


@router.get(
    "/{workload_id}/stream", operation_id="streamWorkload", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def stream_one(
    workload_id: str, yard: YardNow, request: Request, last_event_id: LastEventId = None
) -> EventStream:
    """It as it changes: `workload` (a row), `event`, `progress`, and `end` when it is over.

    An id counts the events that were sent, so that a reader goes on where it was cut off.
    """
    await read.get(yard, workload_id)
    seen = min(int(last_event_id), MAX_SEEN) if last_event_id is not None and last_event_id.isdecimal() else 0
    return events(request, yard, _one(yard, workload_id, seen))


def _page(connection: Connection, yard: Yard, query: WorkloadQuery) -> bytes:
    # All in one go, JSON included: each way to another thread and back costs more than the rows do.
    page = workload_store.page(connection, query)
    return json.dumps({"workloads": rows(connection, yard, page.rows), "next": page.next}).encode()


def rows(connection: Connection, yard: Yard, found: Sequence[Workload]) -> list[Json]:
    """Workloads as rows, as they are now and with their progress."""
    known = workload_store.progress(connection, tuple(w.id for w in found))
    places, moment = places_of(connection), now()
    return [shapes.row(yard.board.of_now(w), known.get(w.id), places, moment) for w in found]


def end(workload: Workload) -> Json:
    """The last event of a stream: how it ended."""
    return {"phase": workload.phase, "exitCode": read.exit_code(workload)}


async def _filters(yard: Yard, texts: list[str]) -> tuple[Filter, ...]:
    places = await look(yard, places_of) if texts else Places({}, {}, {})
    return tuple(_by_name(Filter(*parts), places) for parts in parse_filters(texts))


def _by_name(f: Filter, places: Places) -> Filter:
    """The store knows projects and clusters by name; the API also by id. An id that is none matches nothing."""
    match f.field:
        case "projectId":
            names = {project.id: project.name for project in places.projects.values()}
            return replace(f, field="projectName", value=names.get(f.value, ""))
        case "clusterId":
            names = {cluster.id: cluster.name for cluster in places.clusters.values()}
            return replace(f, field="clusterName", value=names.get(f.value, ""))
    return f


def _next(found: Sized, offset: int, limit: int) -> int | None:
    return offset + limit if len(found) > limit else None


async def all_changes(yard: Yard, projects: frozenset[str] | None = None) -> AsyncGenerator[Sent, None]:
    """The newest workloads of these projects, the oldest of them first, then every one that changes."""
    with yard.feed.subscribe() as changes:
        for shown in reversed(await look(yard, partial(newest, yard=yard, count=PAGE_ROWS, projects=projects))):
            yield Sent("workload", shown)
        while True:
            touched = await _gather(changes)
            shown_now = await look(yard, partial(_still_there, yard=yard, ids=tuple(touched)))
            for shown in shown_now:
                if projects is None or shown["projectName"] in projects:
                    yield Sent("workload", shown)
            for gone in touched.keys() - {shown["id"] for shown in shown_now}:
                yield Sent("deleted", {"id": gone})
            await asyncio.sleep(BREATH)


def newest(connection: Connection, yard: Yard, count: int, projects: frozenset[str] | None = None) -> list[Json]:
    """Rows of the newest workloads."""
    return rows(connection, yard, workload_store.page(connection, WorkloadQuery(limit=count, projects=projects)).rows)


def _still_there(connection: Connection, yard: Yard, ids: tuple[str, ...]) -> list[Json]:
    """Rows of those that are not deleted."""
    found = (workload_store.fetch(connection, one) for one in ids)
    return rows(connection, yard, [w for w in found if w is not None and w.deleted_at is None])


async def _gather(changes: Subscription) -> dict[str, set[str]]:
    """What changed, by id: waits for the first change, then takes all that are there."""
    touched: dict[str, set[str]] = {}
    change = await changes.next()
    while change is not None:
        touched.setdefault(change.workload_id, set()).add(change.kind)
        change = await changes.next(timeout=0)
    return touched


async def _one(yard: Yard, workload_id: str, seen: int) -> AsyncGenerator[Sent, None]:
    kinds = {"workload"}
    with yard.feed.subscribe(workload_id) as changes:
        while True:
            try:
                workload = await read.get(yard, workload_id)
            except NotFound:
                yield Sent("end", {"phase": "Deleted", "exitCode": 130})
                return
            if kinds == {"progress"}:
                known = await read.progress_of(yard, (workload_id,))
                yield Sent("progress", shapes.progress(known.get(workload_id)) or {}, str(seen))
            else:
                # A phase and its events are written together: the events are read second, so none is late.
                for event in await _events_after(yard, workload, seen):
                    seen += 1
                    yield Sent("event", event, str(seen))
                (shown,) = await look(yard, partial(rows, yard=yard, found=(workload,)))
                yield Sent("workload", shown, str(seen))
            if workload.settled:
                yield Sent("end", end(workload), str(seen))
                return
            kinds = (await _gather(changes)).get(workload_id, set())


async def _events_after(yard: Yard, workload: Workload, seen: int) -> list[Json]:
    places = await look(yard, places_of)
    found = await read.events_of(yard, workload.id, seen, MAX_EVENTS, newest_first=False)
    return [shapes.event(event, number, workload, places) for number, event in found]
