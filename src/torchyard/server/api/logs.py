"""The log of a workload as a stream of lines; a line's id is the cursor that a reader goes on from."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.requests import Request

from torchyard.control import logs, read
from torchyard.control.logs import Cursor, LogQuery
from torchyard.control.yard import Yard
from torchyard.domain.errors import NotFound
from torchyard.domain.observation import LogLine
from torchyard.policy.permissions import Action, Resource
from torchyard.server import shapes
from torchyard.server.api.workloads import end
from torchyard.server.deps import YardNow, events, now
from torchyard.server.permit import there
from torchyard.server.query import parse_since
from torchyard.server.shapes import Json
from torchyard.server.stream import EventStream, Sent

MAX_CURSOR = 16384
"""Characters; each replica takes about twenty."""


router = APIRouter(prefix="/workloads", tags=["logs"])


@router.get(
    "/{workload_id}/logs", operation_id="streamWorkloadLogs", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def stream(
    workload_id: str,
    yard: YardNow,
    request: Request,
    attempt: Annotated[int | None, Query(ge=0)] = None,
    replica: Annotated[str | None, Query(max_length=64)] = None,
    rank: Annotated[int | None, Query(ge=0)] = None,
    since: Annotated[str | None, Query(max_length=64)] = None,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
    follow: bool = False,
    last_event_id: Annotated[str | None, Header(max_length=MAX_CURSOR)] = None,
) -> EventStream:
    """Lines of all replicas, or of one replica or rank. `since`: seconds, a duration (`5m`) or a time.

    `attempt` left out is the last one, 0 all from the first on.

    With `follow` it goes on until the workload is over. Its last event is `end` where the workload is over.
    """
    await read.get(yard, workload_id)
    if last_event_id is not None:
        # Refused now: once the stream has begun its status is out.
        Cursor.parse(last_event_id)
    query = LogQuery(
        attempt=attempt,
        replica=replica,
        rank=rank,
        since=parse_since(since, now()) if since is not None else None,
        tail=tail,
        follow=follow,
        after=last_event_id,
    )
    return events(request, yard, _lines(yard, workload_id, query))


async def _lines(yard: Yard, workload_id: str, query: LogQuery) -> AsyncGenerator[Sent, None]:
    async with aclosing(logs.lines(yard, workload_id, query)) as found:
        async for cursor, line in found:
            yield Sent("line", _line(line), cursor)
    try:
        workload = await read.get(yard, workload_id)
    except NotFound:
        yield Sent("end", {"phase": "Deleted", "exitCode": 130})
        return
    if workload.settled:
        yield Sent("end", end(workload))


def _line(line: LogLine) -> Json:
    return {
        "attempt": line.attempt,
        "replica": line.replica,
        "rank": line.rank,
        "kind": line.kind,
        "at": shapes.moment(line.at),
        "text": line.text,
    }
