"""Roles, permissions, access rules: who may do what where."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import JSONResponse, Response

from torchyard.control import access
from torchyard.control.yard import Yard
from torchyard.domain.errors import Invalid, NotFound, Problem
from torchyard.policy.permissions import ROLES, Action, Resource, Role, ScopeType, role_of
from torchyard.server.api.submissions import Id
from torchyard.server.body import Body
from torchyard.server.deps import ActorNow, Offset, YardNow, look, now, places_of
from torchyard.server.permit import SELF, organisation
from torchyard.server.query import kept, parse_filters
from torchyard.server.shapes import TENANT_ID, Json, Places, moment
from torchyard.store import access_rules, users
from torchyard.store.access_rules import AccessRule

router = APIRouter(prefix="/authorization", tags=["authorization"])

FilterBy = Annotated[list[str], Query(alias="filterBy", default_factory=list)]
Limit = Annotated[int, Query(ge=1, le=500)]


class NewRule(Body):
    """A role for a subject at a scope."""

    subject_id: Id
    subject_type: Annotated[str, Field(max_length=32)]
    role_id: Annotated[int, Field(ge=0, lt=2**31)]
    scope_id: Id = ""
    scope_type: ScopeType
    cluster_id: Id | None = None


@router.get("/roles", operation_id="listRoles", dependencies=[SELF])
async def roles() -> Response:
    """The roles there are, and what each allows."""
    return JSONResponse([_role(role) for role in ROLES])


@router.get("/roles/{role_id}", operation_id="getRole", dependencies=[SELF])
async def role(role_id: int) -> Response:
    """One role."""
    found = role_of(role_id)
    if found is None:
        raise NotFound(f"there is no role {role_id}"[:60], "see /api/v1/authorization/roles")
    return JSONResponse(_role(found))


@router.get("/permissions", operation_id="listPermissions", dependencies=[SELF])
async def permissions() -> Response:
    """What permissions there are, by resource."""
    return JSONResponse(
        [{"resourceType": r.value, "displayName": r.value, "actions": [a.value for a in Action]} for r in Resource]
    )


@router.get(
    "/access-rules", operation_id="listAccessRules", dependencies=[organisation(Resource.ACCESS_RULES, Action.READ)]
)
async def listing(yard: YardNow, filter_by: FilterBy, offset: Offset = 0, limit: Limit = 50) -> Response:
    """Who has which role where."""
    return JSONResponse(_page(await _rules(yard, None, filter_by), offset, limit))


@router.get("/me/access-rules", operation_id="listMyAccessRules", dependencies=[SELF])
async def mine(yard: YardNow, actor: ActorNow, filter_by: FilterBy, offset: Offset = 0, limit: Limit = 50) -> Response:
    """One's own roles and where they hold."""
    return JSONResponse(_page(await _rules(yard, actor.id, filter_by), offset, limit))


@router.get(
    "/access-rules/count",
    operation_id="countAccessRules",
    dependencies=[organisation(Resource.ACCESS_RULES, Action.READ)],
)
async def count(yard: YardNow, filter_by: FilterBy) -> Response:
    """How many access rules there are."""
    return JSONResponse({"count": len(await _rules(yard, None, filter_by))})


@router.get("/me/access-rules/count", operation_id="countMyAccessRules", dependencies=[SELF])
async def count_mine(yard: YardNow, actor: ActorNow, filter_by: FilterBy) -> Response:
    """How many access rules there are of one's own."""
    return JSONResponse({"count": len(await _rules(yard, actor.id, filter_by))})


@router.get(
    "/access-rules/{rule_id}",
    operation_id="getAccessRule",
    dependencies=[organisation(Resource.ACCESS_RULES, Action.READ)],
)
async def get(rule_id: int, yard: YardNow) -> Response:
    """One access rule."""
    found = next((rule for rule in await _rules(yard, None, []) if rule["id"] == rule_id), None)
    if found is None:
        raise NotFound(f"there is no access rule {rule_id}"[:60], "list the access rules")
    return JSONResponse(found)


@router.post(
    "/access-rules",
    status_code=201,
    operation_id="createAccessRule",
    dependencies=[organisation(Resource.ACCESS_RULES, Action.CREATE)],
)
async def create(body: NewRule, yard: YardNow, actor: ActorNow) -> Response:
    """Give a user a role at a scope. Their keys have it too."""
    if body.subject_type != "user":
        what = f"subjectType: {body.subject_type!r} has no roles of its own here"
        how = "keys and service accounts act as the user who made them: give the role to that user"
        raise Invalid(what, how, (Problem("subjectType", "is not user"),))
    wide = body.scope_type in (ScopeType.SYSTEM, ScopeType.TENANT)
    rule = AccessRule(
        user_id=body.subject_id,
        role_id=body.role_id,
        scope_type=body.scope_type.value,
        scope_id=str(TENANT_ID) if wide else body.scope_id,
        created_at=now(),
        created_by=actor.name,
    )
    made = await access.create_rule(yard, rule, actor)
    return JSONResponse(_rule(made, await look(yard, places_of)), status_code=201)


@router.delete(
    "/access-rules/{rule_id}",
    status_code=204,
    operation_id="deleteAccessRule",
    dependencies=[organisation(Resource.ACCESS_RULES, Action.DELETE)],
)
async def delete(rule_id: int, yard: YardNow, actor: ActorNow) -> Response:
    """Take a role away; it counts from the next request on."""
    await access.delete_rule(yard, rule_id, actor)
    return Response(status_code=204)


async def _rules(yard: Yard, user_id: str | None, filter_by: list[str]) -> list[Json]:
    filters = parse_filters(filter_by)
    places = await look(yard, places_of)
    found = await look(yard, lambda connection: access_rules.listing(connection, user_id))
    if user_id in (None, yard.owner.id):
        owner = await look(yard, users.owner_of)
        assert owner is not None
        # Not in the store: nobody can take it away.
        implied = AccessRule(
            id=access_rules.OWNERS_RULE,
            user_id=owner.id,
            role_id=ROLES[0].id,
            scope_type="system",
            scope_id=str(TENANT_ID),
            created_at=owner.created_at,
            created_by=owner.username,
        )
        found = (implied, *found)
    shown = [_rule(rule, places) for rule in found]
    return [one for one in shown if kept({name: str(one[name]) for name in FIELDS}, filters)]


FIELDS = ("subjectId", "subjectType", "roleId", "roleName", "scopeId", "scopeType", "scopeName", "createdBy")


def _page(found: list[Json], offset: int, limit: int) -> Json:
    shown = found[offset : offset + limit]
    return {"totalRecords": len(found), "displayRecords": len(shown), "accessRules": shown}


def _role(r: Role) -> Json:
    allowed = {resource: sorted(a.value for a in Action if (resource, a) in r.allows) for resource in Resource}
    return {
        "id": r.id,
        "name": r.name,
        "description": "",
        "kind": "predefined",
        "permissions": [
            {"resourceType": resource.value, "displayName": resource.value, "actions": actions}
            for resource, actions in allowed.items()
            if actions
        ],
    }


def _rule(rule: AccessRule, places: Places) -> Json:
    found = role_of(rule.role_id)
    at = moment(rule.created_at)
    return {
        "id": rule.id,
        "subjectId": rule.user_id,
        "subjectType": "user",
        "roleId": rule.role_id,
        "roleName": found.name if found else "",
        "scopeType": rule.scope_type,
        "scopeId": rule.scope_id,
        "scopeName": _scope_name(rule, places),
        "clusterId": None,
        "tenantId": TENANT_ID,
        "createdBy": rule.created_by,
        "createdAt": at,
        "updatedAt": at,
        "deletedAt": None,
        "status": {"phase": "Ready"},
    }


def _scope_name(rule: AccessRule, places: Places) -> str:
    match ScopeType(rule.scope_type):
        case ScopeType.PROJECT:
            return next((p.name for p in places.projects.values() if p.id == rule.scope_id), "")
        case ScopeType.CLUSTER:
            return next((c.name for c in places.clusters.values() if c.id == rule.scope_id), "")
        case ScopeType.DEPARTMENT:
            return next((d.name for d in places.departments.values() if d.id == rule.scope_id), "")
        case _:
            return rule.scope_type
