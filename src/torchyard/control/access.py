"""What a person may do: access rules made and deleted, and the grants and places that they come to."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Conflict, Invalid, NotFound, Problem
from torchyard.domain.project import Project
from torchyard.policy.permissions import (
    EVERYTHING,
    Action,
    Grant,
    Place,
    Resource,
    Scope,
    ScopeType,
    allows,
    role_of,
)
from torchyard.store import access_rules, audit, claims, clusters, departments, projects, users, workloads
from torchyard.store.access_rules import AccessRule


@dataclass(frozen=True, slots=True)
class Subject:
    """What a path names: whose it is, found or not."""

    workload: str | None = None
    claim: str | None = None
    project: str | None = None
    department: str | None = None


async def grants_of(yard: Yard, actor: Actor) -> tuple[Grant, ...]:
    """The actor's roles and where they hold, as of now."""
    if actor.owner:
        return EVERYTHING
    return _grants(await yard.reading(lambda connection: access_rules.listing(connection, actor.id)))


async def visible_projects(yard: Yard, actor: Actor, resource: Resource) -> frozenset[str] | None:
    """Names of projects whose things of this kind the actor may see; None: all there are."""
    if actor.owner:
        return None

    def fetch(connection: Connection) -> frozenset[str] | None:
        grants = _grants(access_rules.listing(connection, actor.id))
        if allows(grants, resource, Action.READ, Place()):
            return None
        places = {project.name: _place(connection, project) for project in projects.listing(connection)}
        return frozenset(name for name, at in places.items() if allows(grants, resource, Action.READ, at))

    return await yard.reading(fetch)


async def visible_departments(yard: Yard, actor: Actor) -> frozenset[str] | None:
    """Ids of departments that the actor may see; None: all there are."""
    grants = await grants_of(yard, actor)
    if allows(grants, Resource.DEPARTMENTS, Action.READ, Place()):
        return None

    def fetch(connection: Connection) -> frozenset[str]:
        cluster = _cluster(connection)
        known = (department.id for department in departments.listing(connection))
        return frozenset(
            one for one in known if allows(grants, Resource.DEPARTMENTS, Action.READ, Place("", one, cluster))
        )

    return await yard.reading(fetch)


async def place_of(yard: Yard, subject: Subject) -> Place | None:
    """Where the thing is; None: there is none."""

    def fetch(connection: Connection) -> Place | None:
        name = None
        if subject.workload is not None:
            workload = yard.board.get(subject.workload) or workloads.fetch(connection, subject.workload)
            name = workload.project if workload else None
        elif subject.claim is not None:
            claim = claims.fetch(connection, subject.claim)
            name = claim.project if claim else None
        elif subject.department is not None:
            department = departments.fetch(connection, subject.department)
            return Place("", department.id, _cluster(connection)) if department else None
        known = projects.listing(connection)
        found = next((p for p in known if p.name == name or p.id == subject.project), None)
        return _place(connection, found) if found else None

    return await yard.reading(fetch)


async def create_rule(yard: Yard, rule: AccessRule, actor: Actor) -> AccessRule:
    """Give a user a role at a scope. Raises NotFound (user, role, scope), Conflict (there already)."""

    def insert(connection: Connection) -> AccessRule:
        user = users.fetch(connection, rule.user_id)
        if user is None:
            raise NotFound(f"there is no user {rule.user_id[:80]!r}", "list the users")
        if user.owner:
            raise Conflict(f"{user.username} owns this server and may do everything", "nothing needs to be done")
        if role_of(rule.role_id) is None:
            raise NotFound(f"there is no role {rule.role_id}", "see /api/v1/authorization/roles")
        _check_scope(connection, rule)
        made = replace(rule, id=access_rules.insert(connection, rule))
        audit.append(connection, actor.name, "create", f"access-rule/{made.id}", now())
        return made

    return await yard.writing(insert)


async def delete_rule(yard: Yard, rule_id: int, actor: Actor) -> None:
    """Take a role away; it counts from the next request on. Raises NotFound, Conflict (the owner's own)."""
    if rule_id == access_rules.OWNERS_RULE:
        raise Conflict("the owner of this server may do everything", "nobody can take that away")

    def change(connection: Connection) -> None:
        if all(rule.id != rule_id for rule in access_rules.listing(connection)):
            raise NotFound(f"there is no access rule {rule_id}", "list the access rules")
        access_rules.remove(connection, rule_id)
        audit.append(connection, actor.name, "delete", f"access-rule/{rule_id}", now())

    await yard.writing(change)


def _grants(rules: tuple[AccessRule, ...]) -> tuple[Grant, ...]:
    found = ((role_of(rule.role_id), rule) for rule in rules)
    return tuple(Grant(role, Scope(ScopeType(rule.scope_type), rule.scope_id)) for role, rule in found if role)


def _place(connection: Connection, project: Project) -> Place:
    return Place(project.id, project.department_id, _cluster(connection))


def _cluster(connection: Connection) -> str:
    return next((cluster.id for cluster in clusters.listing(connection)), "")


def _check_scope(connection: Connection, rule: AccessRule) -> None:
    match ScopeType(rule.scope_type):
        case ScopeType.SYSTEM | ScopeType.TENANT:
            return
        case ScopeType.CLUSTER:
            known = [cluster.id for cluster in clusters.listing(connection)]
        case ScopeType.DEPARTMENT:
            known = [department.id for department in departments.listing(connection)]
        case ScopeType.PROJECT:
            known = [project.id for project in projects.listing(connection)]
    if rule.scope_id not in known:
        what = f"there is no {rule.scope_type} with id {rule.scope_id[:40]!r}"
        raise Invalid(what, f"ids: {', '.join(known)}", (Problem("scopeId", what),))
