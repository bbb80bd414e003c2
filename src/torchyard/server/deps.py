"""What routes are handed: the yard, who asks, projects and clusters by name, streams that end with the server."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import Depends, Query
from sqlalchemy import Connection
from starlette.requests import HTTPConnection

from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Invalid, NotFound, Problem
from torchyard.domain.project import Cluster, Project
from torchyard.server.auth import Doorkeeper
from torchyard.server.shapes import Places
from torchyard.server.stream import EventStream, Sent
from torchyard.store import clusters, departments, projects
from torchyard.store.database import read

T = TypeVar("T")


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


async def the_yard(connection: HTTPConnection) -> Yard:
    yard = connection.app.state.yard
    assert isinstance(yard, Yard)
    return yard


async def the_actor(connection: HTTPConnection) -> Actor:
    actor = connection.state.actor
    assert isinstance(actor, Actor)
    return actor


async def the_doorkeeper(connection: HTTPConnection) -> Doorkeeper:
    doorkeeper = connection.app.state.doorkeeper
    assert isinstance(doorkeeper, Doorkeeper)
    return doorkeeper


DoorkeeperNow = Annotated[Doorkeeper, Depends(the_doorkeeper)]
YardNow = Annotated[Yard, Depends(the_yard)]
ActorNow = Annotated[Actor, Depends(the_actor)]
Offset = Annotated[int, Query(ge=0, le=2**31)]
Limit = Annotated[int, Query(ge=1, le=500)]


async def look(yard: Yard, ask: Callable[[Connection], T]) -> T:
    """Read from the store in another thread, in one transaction."""

    def run() -> T:
        with read(yard.database) as connection:
            return ask(connection)

    return await asyncio.to_thread(run)


def places_of(connection: Connection) -> Places:
    """Projects, departments and clusters."""
    return Places(
        projects={project.name: project for project in projects.listing(connection)},
        clusters={cluster.name: cluster for cluster in clusters.listing(connection)},
        departments={department.id: department for department in departments.listing(connection)},
    )


def project_of(places: Places, project_id: str) -> Project:
    """The project with this id. Raises Invalid that names the field and the ids that there are."""
    found = next((p for p in places.projects.values() if p.id == project_id), None)
    if found is None:
        known = ", ".join(f"{p.id} ({p.name})" for p in places.projects.values())
        raise Invalid(
            f"there is no project with id {project_id[:40]!r}",
            f"projects: {known}",
            (Problem("projectId", f"is none of {known}"),),
        )
    return found


def cluster_of(places: Places, cluster_id: str | None) -> Cluster:
    """The cluster with this id; the first one when none is named. Raises Invalid as project_of does."""
    attached = tuple(places.clusters.values())
    found = next((c for c in attached if cluster_id in (None, c.id)), None)
    if found is None:
        known = ", ".join(f"{c.id} ({c.name})" for c in attached)
        raise Invalid(
            f"there is no cluster with id {(cluster_id or '')[:40]!r}",
            f"clusters: {known}",
            (Problem("clusterId", f"is none of {known}"),),
        )
    return found


def events(connection: HTTPConnection, yard: Yard, source: AsyncGenerator[Sent, None]) -> EventStream:
    """A stream that ends when its source, its reader or the server does."""
    return EventStream(source, yard.settings.heartbeat, connection.app.state.closing)


def missing(what: str, name: str, how: str | None = None) -> NotFound:
    """No such thing; the name is cut, for it came from outside."""
    return NotFound(f"there is no {what} {name[:80]!r}", how)
