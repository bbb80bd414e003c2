"""Projects: made in a department, given a quota that fits into the department's, deleted when they are empty."""

from dataclasses import replace

from sqlalchemy import Connection

from torchyard.control.departments import fit
from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Conflict, InUse, Invalid, NotFound, Problem
from torchyard.domain.project import DEFAULT_ID, Project, Quota
from torchyard.policy.permissions import ScopeType
from torchyard.store import access_rules, audit, claims, departments, projects, workloads

SHOWN = 5


async def create(yard: Yard, wanted: Project, actor: Actor) -> Project:
    """Make a project. Raises Invalid (department), Conflict (name or namespace taken, quota does not fit)."""

    def insert(connection: Connection) -> Project:
        known = departments.listing(connection)
        if all(department.id != wanted.department_id for department in known):
            what = f"there is no department with id {wanted.department_id[:40]!r}"
            how = f"departments: {', '.join(f'{d.id} ({d.name})' for d in known)}"
            raise Invalid(what, how, (Problem("parentId", "names no department"),))
        _free(connection, wanted)
        made = replace(wanted, id=projects.insert(connection, wanted))
        fit(connection, made.department_id)
        audit.append(connection, actor.name, "create", f"project/{made.name}", made.created_at)
        return made

    return await yard.writing(insert)


async def get(yard: Yard, project_id: str) -> Project:
    """One project by id. Raises NotFound."""
    return await yard.reading(lambda connection: _there(connection, project_id))


async def change(
    yard: Yard, project_id: str, actor: Actor, *, description: str | None = None, quota: Quota | None = None
) -> Project:
    """Another description or quota; what is None stays. Raises NotFound, Conflict (the quota does not fit)."""

    def update(connection: Connection) -> Project:
        before = _there(connection, project_id)
        after = replace(
            before,
            description=before.description if description is None else description,
            quota=before.quota if quota is None else quota,
        )
        projects.save(connection, after)
        if after.quota != before.quota:
            fit(connection, after.department_id)
        audit.append(connection, actor.name, "update", f"project/{after.name}", now())
        return after

    changed = await yard.writing(update)
    yard.bell.queue.set()
    return changed


async def delete(yard: Yard, project_id: str, actor: Actor) -> None:
    """Forget a project with its rules and deleted workloads. Raises NotFound, Conflict (the default), InUse."""

    def forget(connection: Connection) -> None:
        project = _there(connection, project_id)
        if project.id == DEFAULT_ID:
            raise Conflict("the default project stays", "delete what is in it instead")
        _empty(connection, project)
        # Workloads name their project: another one of this name must not begin with what was deleted here.
        workloads.remove_deleted(connection, project.name)
        access_rules.remove_scope(connection, ScopeType.PROJECT.value, project.id)
        projects.remove(connection, project.id)
        audit.append(connection, actor.name, "delete", f"project/{project.name}", now())

    await yard.writing(forget)


def devices_held(yard: Yard) -> dict[str, int]:
    """Devices that the attempts of now hold, by the project's name."""
    held: dict[str, int] = {}
    for workload in yard.board.all():
        if workload.active and workload.attempt is not None:
            held[workload.project] = held.get(workload.project, 0) + workload.attempt.devices
    return held


def _there(connection: Connection, project_id: str) -> Project:
    project = projects.fetch(connection, project_id)
    if project is None:
        raise NotFound(f"there is no project with id {project_id[:40]!r}", "see `torchyard project list`")
    return project


def _free(connection: Connection, wanted: Project) -> None:
    for other in projects.listing(connection):
        if other.name == wanted.name:
            raise Conflict(f"there is a project {wanted.name} already", "choose another name")
        if other.namespace == wanted.namespace:
            what = f"project {other.name} has the namespace {wanted.namespace} already"
            raise Conflict(what, "choose another one: requestedNamespace")


def _empty(connection: Connection, project: Project) -> None:
    used = {
        "workload": workloads.names(connection, project.name),
        "claim": tuple(claim.name for claim in claims.listing(connection, project.name)),
    }
    left = [_listed(noun, names) for noun, names in used.items() if names]
    if left:
        raise InUse(
            f"project {project.name} has {' and '.join(left)}",
            f"delete them first: torchyard delete -p {project.name} NAME, torchyard pvc delete -p {project.name} NAME",
        )


def _listed(noun: str, names: tuple[str, ...]) -> str:
    more = ", ..." if len(names) > SHOWN else ""
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'} ({', '.join(names[:SHOWN])}{more})"
