"""Departments: made, given a quota that their projects share, deleted when no project is left in them."""

from dataclasses import replace

from sqlalchemy import Connection

from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Conflict, InUse, NotFound
from torchyard.domain.project import DEFAULT_ID, Department, Project, Quota
from torchyard.policy.permissions import ScopeType
from torchyard.policy.quota import misfit
from torchyard.store import access_rules, audit, departments, projects


async def create(yard: Yard, wanted: Department, actor: Actor) -> Department:
    """Make a department. Raises Conflict (taken name)."""

    def insert(connection: Connection) -> Department:
        if any(other.name == wanted.name for other in departments.listing(connection)):
            raise Conflict(f"there is a department {wanted.name} already", "choose another name")
        made = replace(wanted, id=departments.insert(connection, wanted))
        audit.append(connection, actor.name, "create", f"department/{made.name}", now())
        return made

    return await yard.writing(insert)


async def get(yard: Yard, department_id: str) -> Department:
    """One department by id. Raises NotFound."""
    return await yard.reading(lambda connection: _there(connection, department_id))


async def change(
    yard: Yard, department_id: str, actor: Actor, *, description: str | None = None, quota: Quota | None = None
) -> Department:
    """Another description or quota; what is None stays. Raises NotFound, Conflict (its projects have more)."""

    def update(connection: Connection) -> Department:
        before = _there(connection, department_id)
        after = replace(
            before,
            description=before.description if description is None else description,
            quota=before.quota if quota is None else quota,
        )
        departments.save(connection, after)
        if after.quota != before.quota:
            fit(connection, after.id)
        audit.append(connection, actor.name, "update", f"department/{after.name}", now())
        return after

    return await yard.writing(update)


async def delete(yard: Yard, department_id: str, actor: Actor) -> None:
    """Forget a department and who may do what in it. Raises NotFound, Conflict (the default), InUse."""

    def forget(connection: Connection) -> None:
        department = _there(connection, department_id)
        if department.id == DEFAULT_ID:
            raise Conflict("the default department stays", "it bounds nothing while it has no quota")
        names = ", ".join(project.name for project in _members(connection, department.id))
        if names:
            raise InUse(f"department {department.name} has projects: {names}", "delete these first")
        access_rules.remove_scope(connection, ScopeType.DEPARTMENT.value, department.id)
        departments.remove(connection, department.id)
        audit.append(connection, actor.name, "delete", f"department/{department.name}", now())

    await yard.writing(forget)


def fit(connection: Connection, department_id: str) -> None:
    """Raises Conflict, which undoes what was written, when the projects of a department have more than it has."""
    complaint = misfit(_there(connection, department_id), _members(connection, department_id))
    if complaint is not None:
        raise Conflict(complaint, "give the projects smaller quotas, or the department a larger one")


def _members(connection: Connection, department_id: str) -> tuple[Project, ...]:
    return tuple(project for project in projects.listing(connection) if project.department_id == department_id)


def _there(connection: Connection, department_id: str) -> Department:
    department = departments.fetch(connection, department_id)
    if department is None:
        raise NotFound(f"there is no department with id {department_id[:40]!r}", "see `torchyard department list`")
    return department
