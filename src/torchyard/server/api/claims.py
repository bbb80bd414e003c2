"""Claims as Run:ai assets: meta, spec, who uses them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field, field_validator
from starlette.responses import JSONResponse, Response

from torchyard.control import access, claims
from torchyard.control.yard import Actor, Yard
from torchyard.domain.asset import Claim
from torchyard.domain.errors import Invalid, Problem
from torchyard.domain.model import Model, Name, straight
from torchyard.domain.storage import ClaimInfo
from torchyard.domain.workload import Workload
from torchyard.policy.permissions import Action, Resource
from torchyard.server.api.submissions import Id, accepted
from torchyard.server.body import Body
from torchyard.server.deps import ActorNow, YardNow, cluster_of, look, places_of, project_of
from torchyard.server.permit import in_project, somewhere, there
from torchyard.server.shapes import Json, Places, model, moment

router = APIRouter(prefix="/asset/datasource", tags=["claims"])


class Meta(Model):
    """Whose it is and what it is called."""

    name: Name
    scope: Literal["system", "tenant", "cluster", "department", "project"] = "project"
    project_id: Id = "1"
    department_id: Id | None = None
    cluster_id: Id | None = None
    description: Annotated[str, Field(max_length=250)] = ""
    workload_supported_types: dict[str, object] | None = None
    auto_delete: bool | None = None


class ClaimSpec(Model):
    """Where it is mounted and what it is made of."""

    path: Annotated[str, Field(pattern=r"^/", max_length=1024)]
    existing_pvc: bool = False
    claim_name: Name | None = None
    read_only: bool = False
    ephemeral: bool = False
    data_sharing: bool | None = None
    claim_info: ClaimInfo = ClaimInfo()

    _straight = field_validator("path")(straight)


class CreateClaim(Body):
    """A claim to make."""

    meta: Meta
    spec: ClaimSpec


@router.post(
    "/pvc",
    status_code=202,
    operation_id="createPvc",
    dependencies=[somewhere(Resource.DATA_SOURCES, Action.CREATE, trusted=True)],
)
async def create(body: CreateClaim, yard: YardNow, actor: ActorNow) -> Response:
    """Make a claim in a project."""
    await in_project(yard, actor, Resource.DATA_SOURCES, Action.CREATE, body.meta.project_id)
    places = await look(yard, places_of)
    meta, spec = body.meta, body.spec
    if meta.scope != "project":
        raise _bad("meta.scope", "only claims of a project can be made", "send scope: project and projectId")
    if spec.ephemeral:
        raise _bad("spec.ephemeral", "an ephemeral claim lives in a workload", "leave it out")
    cluster_of(places, meta.cluster_id)
    claim = await claims.create(
        yard,
        project=project_of(places, meta.project_id).name,
        name=meta.name,
        info=spec.claim_info,
        path=spec.path,
        actor=actor,
        claim_name=spec.claim_name,
        description=meta.description,
        read_only=spec.read_only,
    )
    return JSONResponse(_claim(claim, places, ()), status_code=202)


@router.get("/pvc", operation_id="listPvcs", dependencies=[somewhere(Resource.DATA_SOURCES, Action.READ)])
async def listing(
    yard: YardNow,
    actor: ActorNow,
    name: str | None = None,
    project_id: Annotated[str | None, Query(alias="projectId")] = None,
    usage_info: Annotated[bool, Query(alias="usageInfo")] = False,
) -> Response:
    """All claims, or those of a project or a name."""
    return JSONResponse({"entries": await _entries(yard, actor, name, project_id, usage_info)})


@router.get("", operation_id="listDatasources", dependencies=[somewhere(Resource.DATA_SOURCES, Action.READ)])
async def datasources(
    yard: YardNow,
    actor: ActorNow,
    name: str | None = None,
    project_id: Annotated[str | None, Query(alias="projectId")] = None,
    usage_info: Annotated[bool, Query(alias="usageInfo")] = False,
) -> Response:
    """Data sources of every kind; claims are all that there is."""
    return JSONResponse({"entries": await _entries(yard, actor, name, project_id, usage_info)})


@router.get("/pvc/{claim_id}", operation_id="getPvc", dependencies=[there(Resource.DATA_SOURCES, Action.READ)])
async def get(claim_id: str, yard: YardNow) -> Response:
    """One claim and the workloads that use it."""
    claim = await claims.get(yard, claim_id)
    return JSONResponse(_claim(claim, await look(yard, places_of), claims.users(yard, claim)))


@router.delete(
    "/pvc/{claim_id}",
    status_code=202,
    operation_id="deletePvc",
    dependencies=[there(Resource.DATA_SOURCES, Action.DELETE, trusted=True)],
)
async def delete(claim_id: str, yard: YardNow, actor: ActorNow) -> Response:
    """Delete a claim with all its files. 412 while a workload uses it."""
    claim = await claims.delete(yard, claim_id, actor)
    return accepted(f"claim {claim.name} is deleted")


async def _entries(yard: Yard, actor: Actor, name: str | None, project_id: str | None, usage: bool) -> list[Json]:
    places = await look(yard, places_of)
    project = project_of(places, project_id).name if project_id is not None else None
    seen = await access.visible_projects(yard, actor, Resource.DATA_SOURCES)
    found = await claims.listing(yard, project)
    return [
        _claim(claim, places, claims.users(yard, claim) if usage else None)
        for claim in found
        if name in (None, claim.name) and (seen is None or claim.project in seen)
    ]


def _bad(field: str, what: str, how: str) -> Invalid:
    return Invalid(f"{field}: {what}", how, (Problem(field, what),))


def _claim(c: Claim, places: Places, users: tuple[Workload, ...] | None) -> Json:
    project_id = places.project_id(c.project)
    cluster = next(iter(places.clusters.values()), None)
    shown = {
        "meta": {
            "id": c.id,
            "name": c.name,
            "kind": "pvc",
            "scope": "project",
            "projectId": int(project_id) if project_id else None,
            "projectName": c.project,
            "clusterId": cluster.id if cluster else None,
            "description": c.description,
            "createdBy": c.created_by,
            "createdAt": moment(c.created_at),
            "updatedBy": c.created_by,
            "updatedAt": moment(c.created_at),
        },
        "spec": {
            "path": c.path,
            "claimName": c.claim_name,
            "existingPvc": False,
            "readOnly": c.read_only,
            "claimInfo": model(c.info),
        },
        "status": {"status": "No issues found", "issues": []},
        "clusterInfo": {"resources": [{"name": c.claim_name, "kind": "PersistentVolumeClaim"}]},
    }
    return shown if users is None else shown | {"usedBy": _users(users)}


def _users(users: tuple[Workload, ...]) -> Json:
    groups = {"trainings": "training", "distributed": "distributed", "workspaces": "workspace"}
    return {
        group: [{"id": w.id, "name": w.name, "status": w.phase} for w in users if w.kind == kind]
        for group, kind in groups.items()
    }
