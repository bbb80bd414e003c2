"""Users: list, make, show, switch off, delete; passwords."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import JSONResponse, Response

from torchyard.control import users
from torchyard.control.yard import Yard
from torchyard.domain.errors import Invalid
from torchyard.domain.user import User
from torchyard.policy.permissions import Action, Resource
from torchyard.server.body import Body
from torchyard.server.deps import ActorNow, Offset, YardNow
from torchyard.server.permit import SELF, organisation
from torchyard.server.query import kept, parse_filters
from torchyard.server.shapes import Json, moment

router = APIRouter(tags=["users"])

FilterBy = Annotated[list[str], Query(alias="filterBy", default_factory=list)]
Limit = Annotated[int, Query(ge=1, le=500)]
SortBy = Annotated[str, Query(alias="sortBy", max_length=64)]
SortOrder = Annotated[str, Query(alias="sortOrder", pattern="^(asc|desc)$")]
Search = Annotated[str | None, Query(max_length=255)]

READ = organisation(Resource.USERS, Action.READ)
CREATE = organisation(Resource.USERS, Action.CREATE)
UPDATE = organisation(Resource.USERS, Action.UPDATE)
DELETE = organisation(Resource.USERS, Action.DELETE)


class NewUser(Body):
    """A user to make."""

    email: Annotated[str, Field(min_length=1, max_length=255)]
    reset_password: bool | None = None
    notify: bool | None = None
    """Nobody is written to: hand the password over yourself."""


class Switch(Body):
    """On or off."""

    enabled: bool


class NewPassword(Body):
    """One's own password, old and new."""

    current_password: Annotated[str, Field(max_length=1024, repr=False)]
    new_password: Annotated[str, Field(max_length=1024, repr=False)]


@router.get("/users", operation_id="listUsers", dependencies=[READ])
async def listing(
    yard: YardNow,
    filter_by: FilterBy,
    offset: Offset = 0,
    limit: Limit = 500,
    sort_by: SortBy = "username",
    sort_order: SortOrder = "asc",
    search: Search = None,
) -> Response:
    """All users by name."""
    found = await _found(yard, filter_by, search)
    if sort_by not in FIELDS:
        raise Invalid(f"sortBy: there is no field {sort_by[:40]!r}", f"fields: {', '.join(FIELDS)}")
    found.sort(key=lambda user: str(_fields(user)[sort_by] or ""), reverse=sort_order == "desc")
    return JSONResponse([_user(user) for user in found[offset : offset + limit]])


@router.get("/users/count", operation_id="countUsers", dependencies=[READ])
async def count(yard: YardNow, filter_by: FilterBy, search: Search = None) -> Response:
    """How many users there are."""
    return JSONResponse({"count": len(await _found(yard, filter_by, search))})


@router.post("/users", status_code=201, operation_id="createUser", dependencies=[CREATE])
async def create(body: NewUser, yard: YardNow, actor: ActorNow) -> Response:
    """Make a user. The password to begin with is in this answer and nowhere else."""
    user, password = await users.create(yard, body.email, actor)
    return JSONResponse(_user(user) | {"tempPassword": password}, status_code=201)


@router.get("/users/{user_id}", operation_id="getUser", dependencies=[READ])
async def get(user_id: str, yard: YardNow) -> Response:
    """One user."""
    return JSONResponse(_user(await users.get(yard, user_id)))


@router.patch("/users/{user_id}", operation_id="updateUser", dependencies=[UPDATE])
async def update(user_id: str, body: Switch, yard: YardNow, actor: ActorNow) -> Response:
    """Switch a user on or off; all their tokens follow at once."""
    return JSONResponse(_user(await users.enable(yard, user_id, body.enabled, actor)))


@router.delete("/users/{user_id}", status_code=204, operation_id="deleteUser", dependencies=[DELETE])
async def delete(user_id: str, yard: YardNow, actor: ActorNow) -> Response:
    """Delete a user with keys and access rules. Workloads stay."""
    await users.delete(yard, user_id, actor)
    return Response(status_code=204)


@router.post("/users/{user_id}/password", operation_id="resetUserPassword", dependencies=[UPDATE])
async def reset(user_id: str, yard: YardNow, actor: ActorNow) -> Response:
    """A new password for a user, shown once. Their sessions end."""
    return JSONResponse({"password": await users.reset(yard, user_id, actor)})


@router.post("/users/{user_id}/logout", status_code=204, operation_id="logoutUser", dependencies=[UPDATE])
async def log_out(user_id: str, yard: YardNow, actor: ActorNow) -> Response:
    """End the sessions of a user. Access keys go on."""
    await users.log_out(yard, user_id, actor)
    return Response(status_code=204)


@router.post("/me/password", status_code=204, operation_id="changePassword", dependencies=[SELF])
async def change_password(body: NewPassword, yard: YardNow, actor: ActorNow) -> Response:
    """Change one's own password. Other sessions end."""
    await users.change_password(yard, actor, body.current_password, body.new_password)
    return Response(status_code=204)


FIELDS = ("username", "createdBy", "lastLogin", "creationTime", "lastUpdated", "isLocal")


def _fields(user: User) -> Json:
    """What filters and sorting know."""
    values = (user.username, user.created_by, user.last_login, user.created_at, user.updated_at, True)
    return dict(zip(FIELDS, values, strict=True))


async def _found(yard: Yard, filter_by: list[str], search: str | None) -> list[User]:
    filters = parse_filters(filter_by)
    all_users = await users.listing(yard)
    found = [user for user in all_users if kept(_fields(user), filters)]
    return [user for user in found if search is None or search.lower() in user.username.lower()]


def _user(u: User) -> Json:
    return {
        "id": u.id,
        "username": u.username,
        "createdBy": u.created_by,
        "createdAt": moment(u.created_at),
        "updatedAt": moment(u.updated_at),
        "lastLogin": moment(u.last_login),
        "isLocal": True,
        "enabled": u.enabled,
        "needToChangePassword": u.temporary,
        "groups": [],
    }
