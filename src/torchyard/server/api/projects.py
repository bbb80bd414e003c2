"""Projects: list, count, make, show, change, delete; their quotas."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response

from torchyard.control import access, projects
from torchyard.control.yard import Actor, Yard
from torchyard.domain.model import Name
from torchyard.domain.project import DEFAULT_ID, Project
from torchyard.policy.permissions import Action, Resource
from torchyard.server.api.submissions import Id
from torchyard.server.deps import ActorNow, Limit, Offset, YardNow, cluster_of, look, now, places_of
from torchyard.server.permit import in_department, somewhere, there
from torchyard.server.query import FilterBy, Search, SortBy, SortOrder, Value, arranged, found_in
from torchyard.server.resources import ResourceList, Unit, patched, quota_of, resources, total
from torchyard.server.shapes import Json, Places, moment

router = APIRouter(prefix="/org-unit/projects", tags=["organisation"])

FIELDS = (
    *("name", "clusterId", "departmentId", "departmentName", "parentId", "parentName", "phase"),
    *("totalGpuQuota", "gpuAllocated", "createdAt"),
)
"""What filters and sorting know."""


class NewProject(Unit):
    """A project to make."""

    name: Name
    resources: ResourceList = Field(default_factory=list)
    cluster_id: Id | None = None
    parent_id: Id = DEFAULT_ID
    requested_namespace: Name | None = None
    enforce_runai_scheduler: Literal[True] = True


class ProjectChange(Unit):
    """What a project is from now on; its name stays."""

    enforce_runai_scheduler: Literal[True] = True


@router.get("", operation_id="listProjects", dependencies=[somewhere(Resource.PROJECTS, Action.READ)])
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
    """A page of the projects that the caller may see."""
    places = await look(yard, places_of)
    held = projects.devices_held(yard)
    found = await _found(yard, actor, places, filter_by, search)
    rows = arranged(found, lambda p: _fields(p, places, held), FIELDS, sort_by, sort_order)
    after = offset + limit if len(rows) > offset + limit else None
    shown = [_project(p, places, held) for p in rows[offset : offset + limit]]
    return JSONResponse({"projects": shown, "next": after})


@router.get("/count", operation_id="countProjects", dependencies=[somewhere(Resource.PROJECTS, Action.READ)])
async def count(yard: YardNow, actor: ActorNow, filter_by: FilterBy, search: Search = None) -> Response:
    """How many projects the caller may see."""
    places = await look(yard, places_of)
    return JSONResponse({"count": len(await _found(yard, actor, places, filter_by, search))})


@router.post(
    "", status_code=201, operation_id="createProject", dependencies=[somewhere(Resource.PROJECTS, Action.CREATE)]
)
async def create(body: NewProject, yard: YardNow, actor: ActorNow) -> Response:
    """Make a project. Without a quota its workloads may take every device there is."""
    await in_department(yard, actor, Resource.PROJECTS, Action.CREATE, body.parent_id)
    cluster_of(await look(yard, places_of), body.cluster_id)
    wanted = Project(
        id="",
        name=body.name,
        created_at=now(),
        department_id=body.parent_id,
        description=body.description or "",
        namespace=body.requested_namespace or body.name,
        quota=quota_of(body.resources),
    )
    return await _answer(yard, await projects.create(yard, wanted, actor), status=201)


@router.get("/{project_id}", operation_id="getProject", dependencies=[there(Resource.PROJECTS, Action.READ)])
async def get(project_id: str, yard: YardNow) -> Response:
    """One project."""
    return await _answer(yard, await projects.get(yard, project_id))


@router.put("/{project_id}", operation_id="updateProject", dependencies=[there(Resource.PROJECTS, Action.UPDATE)])
async def update(project_id: str, body: ProjectChange, yard: YardNow, actor: ActorNow) -> Response:
    """Another description and quota. What runs goes on, also when it holds more than the new quota."""
    quota = quota_of(body.resources)
    changed = await projects.change(yard, project_id, actor, description=body.description or "", quota=quota)
    return await _answer(yard, changed)


@router.delete(
    "/{project_id}",
    status_code=204,
    operation_id="deleteProject",
    dependencies=[there(Resource.PROJECTS, Action.DELETE)],
)
async def delete(project_id: str, yard: YardNow, actor: ActorNow) -> Response:
    """Delete a project in which nothing is left, with the access rules at it."""
    await projects.delete(yard, project_id, actor)
    return Response(status_code=204)


@router.put(
    "/{project_id}/resources",
    operation_id="updateProjectResources",
    dependencies=[there(Resource.PROJECTS, Action.UPDATE)],
)
async def set_resources(project_id: str, body: ResourceList, yard: YardNow, actor: ActorNow) -> Response:
    """Another quota."""
    return await _answer(yard, await projects.change(yard, project_id, actor, quota=quota_of(body)))


@router.patch(
    "/{project_id}/resources",
    operation_id="patchProjectResources",
    dependencies=[there(Resource.PROJECTS, Action.UPDATE)],
)
async def patch_resources(project_id: str, body: ResourceList, yard: YardNow, actor: ActorNow) -> Response:
    """Another quota of what is named; the rest stays."""
    return await _answer(yard, await projects.change(yard, project_id, actor, quota=patched(body)))


async def _answer(yard: Yard, project: Project, status: int = 200) -> Response:
    shown = _project(project, await look(yard, places_of), projects.devices_held(yard))
    return JSONResponse(shown, status_code=status)


async def _found(yard: Yard, actor: Actor, places: Places, filter_by: list[str], search: str | None) -> list[Project]:
    seen = await access.visible_projects(yard, actor, Resource.PROJECTS)
    held = projects.devices_held(yard)
    visible = [p for p in places.projects.values() if seen is None or p.name in seen]
    return found_in(visible, lambda p: _fields(p, places, held), filter_by, search)


def _fields(p: Project, places: Places, held: dict[str, int]) -> dict[str, Value]:
    department = places.department(p.name)
    cluster = next(iter(places.clusters.values()), None)
    values = (
        *(p.name, cluster.id if cluster else None, department.id, department.name, department.id, department.name),
        *("Ready", p.quota.deserved, held.get(p.name, 0), p.created_at),
    )
    return dict(zip(FIELDS, values, strict=True))


def _project(p: Project, places: Places, held: dict[str, int]) -> Json:
    department = places.department(p.name)
    cluster = next(iter(places.clusters.values()), None)
    allocated = {"gpu": held.get(p.name, 0), "cpu": None, "memory": None}
    return {
        "id": p.id,
        "name": p.name,
        "description": p.description,
        "clusterId": cluster.id if cluster else None,
        "parentId": department.id,
        "parent": {"id": department.id, "name": department.name, "type": "department"},
        "departmentId": department.id,
        "departmentName": department.name,
        "requestedNamespace": p.namespace,
        "enforceRunaiScheduler": True,
        "status": {
            "namespace": p.namespace,
            "phase": "Ready",
            "phaseMessage": "",
            "quotaStatus": {"allocated": allocated},
        },
        "resources": resources(p.quota),
        "totalResources": total(p.quota),
        "defaultNodePools": None,
        "effective": {},
        "createdAt": moment(p.created_at),
    }
