"""Claims as Run:ai assets: meta, spec, who uses them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field, field_validator
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
from torchyard.server.deps import ActorNow, Limit, Offset, YardNow, cluster_of, look, places_of, project_of
from torchyard.server.permit import in_project, somewhere, there
from torchyard.server.shapes import Json, Places, model, moment

router = APIRouter(prefix="/asset/datasource", tags=["claims"])


Scope = Literal["system", "tenant", "cluster", "department", "project"]


class Meta(Model):
    """Whose it is and what it is called."""

    name: Name
    scope: Scope = "project"
    project_id: Id = "1"
    department_id: Id | None = None
    cluster_id: Id | None = None
    description: Annotated[str, Field(max_length=250)] = ""
    workload_supported_types: dict[str, object] | None = None
    auto_delete: bool | None = None
    private: bool = False
    """Means something for credentials; clients send it with every asset."""


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


class MetaChange(Model):
    """What can be changed of its meta; the rest is passed over, as clients send back what they were given."""

    model_config = ConfigDict(extra="ignore")

    name: Name | None = None
    description: Annotated[str, Field(max_length=250)] | None = None


class SpecChange(Model):
    """What can be changed of its spec; the rest is passed over too."""

    model_config = ConfigDict(extra="ignore")

    path: Annotated[str, Field(pattern=r"^/", max_length=1024)] | None = None

    @field_validator("path")
    @classmethod
    def _straight(cls, path: str | None) -> str | None:
        return path if path is None else straight(path)


class ChangeClaim(Body):
    """Another name, description or mount point."""

    meta: MetaChange = MetaChange()
    spec: SpecChange = SpecChange()


class Filters(Model):
    """Which claims to list. What a claim cannot differ in (compliance) is passed over."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, Field(max_length=255)] | None = None
    scope: Scope | None = None
    project_id: Id | None = None
    department_id: Id | None = None
    cluster_id: Id | None = None
    usage_info: bool = False
    include_descendants: bool = True
    asset_ids: list[str] = Field(default_factory=list)


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
    if meta.private:
        raise _bad("meta.private", "a claim is its project's", "leave it out")
    if spec.existing_pvc:
        raise _bad(
            "spec.existingPvc",
            "this machine has no claims but those made here",
            "leave it out to make a new one, or name one of `GET /api/v1/asset/datasource/pvc` in the workload",
        )
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
async def listing(yard: YardNow, actor: ActorNow, filters: Annotated[Filters, Query()]) -> Response:
    """All claims, or those that pass the filters."""
    return JSONResponse({"entries": await _entries(yard, actor, filters)})


@router.get("", operation_id="listDatasources", dependencies=[somewhere(Resource.DATA_SOURCES, Action.READ)])
async def datasources(yard: YardNow, actor: ActorNow, filters: Annotated[Filters, Query()]) -> Response:
    """Data sources of every kind; claims are all that there is."""
    return JSONResponse({"entries": await _entries(yard, actor, filters)})


@router.get("/pvc/{claim_id}", operation_id="getPvc", dependencies=[there(Resource.DATA_SOURCES, Action.READ)])
async def get(claim_id: str, yard: YardNow) -> Response:
    """One claim and the workloads that use it."""
    claim = await claims.get(yard, claim_id)
    return JSONResponse(_claim(claim, await look(yard, places_of), claims.users(yard, claim)))


@router.put(
    "/pvc/{claim_id}",
    status_code=202,
    operation_id="updatePvc",
    dependencies=[there(Resource.DATA_SOURCES, Action.UPDATE)],
)
async def update(claim_id: str, body: ChangeClaim, yard: YardNow, actor: ActorNow) -> Response:
    """Another name, description or mount point. `claimName` stays what it is."""
    meta = body.meta
    changed = await claims.change(
        yard, claim_id, actor, name=meta.name, description=meta.description, path=body.spec.path
    )
    return JSONResponse(_claim(changed, await look(yard, places_of), None), status_code=202)


@router.get(
    "/pvc/{claim_id}/history",
    operation_id="getPvcHistory",
    dependencies=[there(Resource.DATA_SOURCES, Action.READ)],
)
async def history(claim_id: str, yard: YardNow, offset: Offset = 0, limit: Limit = 50) -> Response:
    """When it was made and changed, the newest first."""
    records = _history(await claims.get(yard, claim_id))
    following = offset + limit if len(records) > offset + limit else None
    return JSONResponse({"records": records[offset : offset + limit], "next": following})


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


async def _entries(yard: Yard, actor: Actor, filters: Filters) -> list[Json]:
    places = await look(yard, places_of)
    project = project_of(places, filters.project_id).name if filters.project_id is not None else None
    seen = await access.visible_projects(yard, actor, Resource.DATA_SOURCES)
    if not _in_scope(filters, places):
        return []
    department = filters.department_id
    wanted = {identity for text in filters.asset_ids for identity in text.split(",")}
    found = await claims.listing(yard, project)
    return [
        _claim(claim, places, claims.users(yard, claim) if filters.usage_info else None)
        for claim in found
        if filters.name in (None, claim.name)
        and (seen is None or claim.project in seen)
        and department in (None, places.department(claim.project).id)
        and (not wanted or claim.id in wanted)
    ]


def _in_scope(filters: Filters, places: Places) -> bool:
    """All claims are a project's, so that any other scope holds them as descendants only."""
    if filters.scope not in (None, "project") and not filters.include_descendants:
        return False
    clusters = {cluster.id for cluster in places.clusters.values()}
    return filters.cluster_id is None or filters.cluster_id in clusters


def _history(c: Claim) -> list[Json]:
    changes = [(c.updated_at, f"changed by {c.updated_by}")] if c.updated_at else []
    return [
        {
            "meta": {"creationTimestamp": moment(at), "type": "PhaseUpdate"},
            "spec": {"phaseUpdate": {"phase": "Ready", "phaseMessage": what}},
        }
        for at, what in (*changes, (c.created_at, f"made by {c.created_by}"))
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
            "departmentId": places.department(c.project).id,
            "clusterId": cluster.id if cluster else None,
            "private": False,
            "description": c.description,
            "createdBy": c.created_by,
            "createdAt": moment(c.created_at),
            "updatedBy": c.updated_by or c.created_by,
            "updatedAt": moment(c.updated_at or c.created_at),
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
