"""Departments: list, count, make, show, change, delete; their quotas."""

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response

from torchyard.control import access, departments, projects
from torchyard.control.yard import Actor, Yard
from torchyard.domain.model import Name
from torchyard.domain.project import Department
from torchyard.policy.permissions import Action, Resource
from torchyard.server.api.submissions import Id
from torchyard.server.deps import ActorNow, Limit, Offset, YardNow, cluster_of, look, now, places_of
from torchyard.server.permit import organisation, somewhere, there
from torchyard.server.query import FilterBy, Search, SortBy, SortOrder, Value, arranged, found_in
from torchyard.server.resources import ResourceList, Unit, patched, quota_of, resources, total
from torchyard.server.shapes import Json, Places, moment

router = APIRouter(prefix="/org-unit/departments", tags=["organisation"])

FIELDS = ("name", "clusterId", "totalGpuQuota", "gpuAllocated", "createdAt")
"""What filters and sorting know."""


class NewDepartment(Unit):
    """A department to make."""

    name: Name
    resources: ResourceList = Field(default_factory=list)
    cluster_id: Id | None = None


@router.get("", operation_id="listDepartments", dependencies=[somewhere(Resource.DEPARTMENTS, Action.READ)])
async def listing(
    yard: YardNow,
    actor: ActorNow,
    filter_by: FilterBy,
    offset: Offset = 0,
    limit: Limit = 50,
    sort_by: SortBy = "name",
    sort_order: SortOrder = "asc",
    search: Search = None,
) -> Response:
    """A page of the departments that the caller may see."""
    places = await look(yard, places_of)
    held = _held(yard, places)
    found = await _found(yard, actor, places, filter_by, search)
    rows = arranged(found, lambda d: _fields(d, places, held), FIELDS, sort_by, sort_order)
    after = offset + limit if len(rows) > offset + limit else None
    shown = [_department(d, places, held) for d in rows[offset : offset + limit]]
    return JSONResponse({"departments": shown, "next": after})


@router.get("/count", operation_id="countDepartments", dependencies=[somewhere(Resource.DEPARTMENTS, Action.READ)])
async def count(yard: YardNow, actor: ActorNow, filter_by: FilterBy, search: Search = None) -> Response:
    """How many departments the caller may see."""
    places = await look(yard, places_of)
    return JSONResponse({"count": len(await _found(yard, actor, places, filter_by, search))})


@router.post(
    "",
    status_code=201,
    operation_id="createDepartment",
    dependencies=[organisation(Resource.DEPARTMENTS, Action.CREATE)],
)
async def create(body: NewDepartment, yard: YardNow, actor: ActorNow) -> Response:
    """Make a department. The quotas of its projects have to fit into its own."""
    cluster_of(await look(yard, places_of), body.cluster_id)
    wanted = Department(
        id="",
        name=body.name,
        created_at=now(),
        description=body.description or "",
        quota=quota_of(body.resources),
    )
    return await _answer(yard, await departments.create(yard, wanted, actor), status=201)


@router.get("/{department_id}", operation_id="getDepartment", dependencies=[there(Resource.DEPARTMENTS, Action.READ)])
async def get(department_id: str, yard: YardNow) -> Response:
    """One department."""
    return await _answer(yard, await departments.get(yard, department_id))


@router.put(
    "/{department_id}", operation_id="updateDepartment", dependencies=[there(Resource.DEPARTMENTS, Action.UPDATE)]
)
async def update(department_id: str, body: Unit, yard: YardNow, actor: ActorNow) -> Response:
    """Another description and quota; its name stays."""
    quota = quota_of(body.resources)
    changed = await departments.change(yard, department_id, actor, description=body.description or "", quota=quota)
    return await _answer(yard, changed)


@router.delete(
    "/{department_id}",
    status_code=204,
    operation_id="deleteDepartment",
    dependencies=[there(Resource.DEPARTMENTS, Action.DELETE)],
)
async def delete(department_id: str, yard: YardNow, actor: ActorNow) -> Response:
    """Delete a department that has no projects, with the access rules at it."""
    await departments.delete(yard, department_id, actor)
    return Response(status_code=204)


@router.put(
    "/{department_id}/resources",
    operation_id="updateDepartmentResources",
    dependencies=[there(Resource.DEPARTMENTS, Action.UPDATE)],
)
async def set_resources(department_id: str, body: ResourceList, yard: YardNow, actor: ActorNow) -> Response:
    """Another quota."""
    return await _answer(yard, await departments.change(yard, department_id, actor, quota=quota_of(body)))


@router.patch(
    "/{department_id}/resources",
    operation_id="patchDepartmentResources",
    dependencies=[there(Resource.DEPARTMENTS, Action.UPDATE)],
)
async def patch_resources(department_id: str, body: ResourceList, yard: YardNow, actor: ActorNow) -> Response:
    """Another quota of what is named; the rest stays."""
    return await _answer(yard, await departments.change(yard, department_id, actor, quota=patched(body)))


async def _answer(yard: Yard, department: Department, status: int = 200) -> Response:
    places = await look(yard, places_of)
    return JSONResponse(_department(department, places, _held(yard, places)), status_code=status)


async def _found(
    yard: Yard, actor: Actor, places: Places, filter_by: list[str], search: str | None
) -> list[Department]:
    seen = await access.visible_departments(yard, actor)
    held = _held(yard, places)
    visible = [d for d in places.departments.values() if seen is None or d.id in seen]
    return found_in(visible, lambda d: _fields(d, places, held), filter_by, search)


def _held(yard: Yard, places: Places) -> dict[str, int]:
    """Devices that the projects of a department hold together, by its id."""
    held: dict[str, int] = {}
    for name, devices in projects.devices_held(yard).items():
        department = places.department(name)
        held[department.id] = held.get(department.id, 0) + devices
    return held


def _fields(d: Department, places: Places, held: dict[str, int]) -> dict[str, Value]:
    cluster = next(iter(places.clusters.values()), None)
    values = (d.name, cluster.id if cluster else None, d.quota.deserved, held.get(d.id, 0), d.created_at)
    return dict(zip(FIELDS, values, strict=True))


def _department(d: Department, places: Places, held: dict[str, int]) -> Json:
    cluster = next(iter(places.clusters.values()), None)
    members = [project for project in places.projects.values() if project.department_id == d.id]
    allocated = {"gpu": held.get(d.id, 0), "cpu": None, "memory": None}
    return {
        "id": d.id,
        "name": d.name,
        "description": d.description,
        "clusterId": cluster.id if cluster else None,
        "parentId": None,
        "status": {"phase": "Ready", "phaseMessage": "", "quotaStatus": {"allocated": allocated}},
        "resources": resources(d.quota),
        "totalResources": total(d.quota),
        "projectsCount": len(members),
        "projectsGpuQuota": sum(project.quota.deserved or 0 for project in members),
        "createdAt": moment(d.created_at),
    }
