"""What a route needs, said at the route: a dependency that asks the table of permissions before anything is done."""

from dataclasses import dataclass
from enum import StrEnum

from fastapi import Depends
from fastapi.params import Depends as Dependency
from starlette.requests import HTTPConnection

from torchyard.control import access
from torchyard.control.access import Subject
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Forbidden, NotFound
from torchyard.policy.permissions import Action, Place, Resource, allows, allows_somewhere
from torchyard.server.deps import ActorNow, YardNow

TRUST = "this cluster is one trust domain: only the OS user who owns the server may do this here"


class Where(StrEnum):
    """Where the permission has to hold."""

    SELF = "self"
    """Everybody may: it is about themselves."""
    SOMEWHERE = "somewhere"
    """In any place; the route shows what lies there, or asks again for the project in its body."""
    THERE = "there"
    """In the project of what the path names."""
    ORGANISATION = "organisation"
    """Over everything."""


@dataclass(frozen=True, slots=True)
class Need:
    """What whoever asks must be allowed to do, and whether they must be the owner of the server besides."""

    resource: Resource | None
    action: Action
    where: Where
    trusted: bool = False

    async def __call__(self, connection: HTTPConnection, yard: YardNow, actor: ActorNow) -> None:
        """Raises Forbidden, and NotFound for what the actor may not even see."""
        if self.resource is not None:
            await self._permit(self.resource, connection, yard, actor)
        if self.trusted and not actor.owner:
            raise Forbidden(TRUST, f"ask {yard.owner.name} to do it")

    async def _permit(self, resource: Resource, connection: HTTPConnection, yard: Yard, actor: Actor) -> None:
        grants = await access.grants_of(yard, actor)
        if self.where is Where.SOMEWHERE:
            permitted = allows_somewhere(grants, resource, self.action)
        elif self.where is Where.ORGANISATION:
            permitted = allows(grants, resource, self.action, Place())
        elif actor.owner:
            return
        else:
            place = await access.place_of(yard, subject_of(connection))
            shown = Resource.DATA_SOURCES if resource is Resource.FILES else resource
            shown = Resource.WORKLOADS if resource is Resource.EXEC else shown
            if place is None or not allows(grants, shown, Action.READ, place):
                raise NotFound("there is no such thing, or not for you", "list what there is")
            permitted = allows(grants, resource, self.action, place)
        if not permitted:
            raise refused(actor, resource, self.action)


def refused(actor: Actor, resource: Resource, action: Action) -> Forbidden:
    """The sentence for somebody who may not."""
    return Forbidden(
        f"{actor.name} may not {action.value} {resource.value} here",
        "an administrator can give you a role: torchyard user grant, or POST /api/v1/authorization/access-rules",
    )


def subject_of(connection: HTTPConnection) -> Subject:
    """What the path names."""
    path = connection.path_params
    return Subject(path.get("workload_id"), path.get("claim_id"), path.get("project_id"), path.get("department_id"))


async def in_project(yard: Yard, actor: Actor, resource: Resource, action: Action, project_id: str) -> None:
    """The actor may do this in the project that a body names. Raises Forbidden; says nothing of what there is."""
    await _within(yard, actor, resource, action, Subject(project=project_id))


async def in_department(yard: Yard, actor: Actor, resource: Resource, action: Action, department_id: str) -> None:
    """The same for a department that a body names."""
    await _within(yard, actor, resource, action, Subject(department=department_id))


async def _within(yard: Yard, actor: Actor, resource: Resource, action: Action, subject: Subject) -> None:
    place = await access.place_of(yard, subject) or Place()
    if not actor.owner and not allows(await access.grants_of(yard, actor), resource, action, place):
        raise refused(actor, resource, action)


def _dependency(need: Need) -> Dependency:
    found = Depends(need)
    assert isinstance(found, Dependency)
    return found


def somewhere(resource: Resource, action: Action, trusted: bool = False) -> Dependency:
    """For lists and for bodies that name a project."""
    return _dependency(Need(resource, action, Where.SOMEWHERE, trusted))


def there(resource: Resource, action: Action, trusted: bool = False) -> Dependency:
    """For what the path names."""
    return _dependency(Need(resource, action, Where.THERE, trusted))


def organisation(resource: Resource, action: Action, trusted: bool = False) -> Dependency:
    """For what belongs to no project."""
    return _dependency(Need(resource, action, Where.ORGANISATION, trusted))


SELF = _dependency(Need(None, Action.READ, Where.SELF))
"""For what everybody may see and change of their own."""
