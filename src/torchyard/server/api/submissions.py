"""Submit, show, stop, resume and delete: the same routes for trainings, distributed and workspaces."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import BeforeValidator, Field, field_validator
from starlette.responses import JSONResponse, Response

from torchyard.control import ask, read, submit
from torchyard.control.yard import Actor, Yard
from torchyard.domain.errors import Invalid
from torchyard.domain.model import Name
from torchyard.domain.spec import Extras, Kind, ReplicaSpec, Spec, Submission
from torchyard.domain.workload import Workload
from torchyard.policy.permissions import Action, Resource
from torchyard.server import shapes
from torchyard.server.body import Body
from torchyard.server.deps import ActorNow, YardNow, cluster_of, look, missing, places_of, project_of
from torchyard.server.permit import in_project, somewhere, there
from torchyard.server.shapes import Places

IdempotencyKey = Annotated[str | None, Header(max_length=255)]
Grace = Annotated[float | None, Query(ge=0, le=86400)]


def _text(value: object) -> object:
    """Ids are numeric strings; some clients send the number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Id = Annotated[str, BeforeValidator(_text), Field(max_length=64)]


class Submit(Body):
    """A workload of one replica, as submitted."""

    name: Name | None = None
    use_given_name_as_prefix: bool = False
    project_id: Id = "1"
    cluster_id: Id | None = None
    spec: Spec
    torchyard: Extras = Extras()
    environment: dict[str, str] = Field(default_factory=dict, repr=False)
    """The caller's own environment. Sealed, never part of the spec."""

    @field_validator("environment")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name or "=" in name:
                raise ValueError(f"{name[:80]!r} is no name of a variable")
        return value


class SubmitDistributed(Submit):
    """A workload of several replicas: workers, and a master that may have a spec of its own."""

    master_spec: ReplicaSpec | None = None
    master_spec_same_as_worker: bool | None = None


def submission_of(kind: Kind, body: Submit, places: Places) -> Submission:
    """The body in the words of the domain: names instead of ids."""
    master = body.master_spec if isinstance(body, SubmitDistributed) else None
    if isinstance(body, SubmitDistributed) and body.master_spec_same_as_worker and master is not None:
        raise Invalid("masterSpec is given, and masterSpecSameAsWorker says that there is none", "send one of the two")
    if body.use_given_name_as_prefix and body.name is None:
        raise Invalid("useGivenNameAsPrefix needs a name", "send `name`")
    return Submission(
        kind=kind,
        name=body.name,
        project=project_of(places, body.project_id).name,
        cluster=cluster_of(places, body.cluster_id).name,
        spec=body.spec,
        master_spec=master,
        torchyard=body.torchyard,
    )


async def _create(kind: Kind, body: Submit, yard: Yard, actor: Actor, key: str | None) -> Response:
    await in_project(yard, actor, Resource.WORKLOADS, Action.CREATE, body.project_id)
    places = await look(yard, places_of)
    request = submit.Request(
        submission=submission_of(kind, body, places),
        environment=body.environment,
        idempotency_key=key,
        prefix=body.use_given_name_as_prefix,
    )
    done = await submit.submit(yard, request, actor)
    answer = shapes.submission(done.workload, body.name, places)
    answer["findings"] = [shapes.finding(f) for f in done.findings]
    answer["sentence"] = done.sentence
    return JSONResponse(answer, status_code=202)


trainings = APIRouter(prefix="/workloads/trainings", tags=["workloads"])
distributed = APIRouter(prefix="/workloads/distributed", tags=["workloads"])
workspaces = APIRouter(prefix="/workloads/workspaces", tags=["workloads"])


@trainings.post(
    "",
    status_code=202,
    operation_id="createTraining",
    dependencies=[somewhere(Resource.WORKLOADS, Action.CREATE, trusted=True)],
)
async def create_training(
    body: Submit, yard: YardNow, actor: ActorNow, idempotency_key: IdempotencyKey = None
) -> Response:
    """Submit a training of one replica."""
    return await _create(Kind.TRAINING, body, yard, actor, idempotency_key)


@distributed.post(
    "",
    status_code=202,
    operation_id="createDistributed",
    dependencies=[somewhere(Resource.WORKLOADS, Action.CREATE, trusted=True)],
)
async def create_distributed(
    body: SubmitDistributed, yard: YardNow, actor: ActorNow, idempotency_key: IdempotencyKey = None
) -> Response:
    """Submit a training of several replicas."""
    return await _create(Kind.DISTRIBUTED, body, yard, actor, idempotency_key)


@workspaces.post(
    "",
    status_code=202,
    operation_id="createWorkspace",
    dependencies=[somewhere(Resource.WORKLOADS, Action.CREATE, trusted=True)],
)
async def create_workspace(
    body: Submit, yard: YardNow, actor: ActorNow, idempotency_key: IdempotencyKey = None
) -> Response:
    """Submit an interactive workload of one replica."""
    return await _create(Kind.WORKSPACE, body, yard, actor, idempotency_key)


def _add_actions(router: APIRouter, kind: Kind) -> None:
    """Show, delete, suspend and resume workloads of one kind."""
    noun = kind.value.capitalize()

    async def fetch(workload_id: str, yard: Yard) -> Workload:
        workload = await read.get(yard, workload_id)
        if workload.kind is not kind:
            raise missing(f"{kind.value} workload", workload_id, f"its kind is {workload.kind.value}")
        return workload

    @router.get("/{workload_id}", operation_id=f"get{noun}", dependencies=[there(Resource.WORKLOADS, Action.READ)])
    async def get(workload_id: str, yard: YardNow) -> Response:
        """The workload as it was submitted, and its phase."""
        workload = await fetch(workload_id, yard)
        return JSONResponse(shapes.submission(workload, None, await look(yard, places_of)))

    @router.delete(
        "/{workload_id}",
        status_code=202,
        operation_id=f"delete{noun}",
        dependencies=[there(Resource.WORKLOADS, Action.DELETE)],
    )
    async def delete(workload_id: str, yard: YardNow, actor: ActorNow) -> Response:
        """Stop it if it runs, then forget it with its logs. Its name is free again."""
        workload = await fetch(workload_id, yard)
        await ask.delete(yard, workload_id, actor)
        return accepted(f"{workload.name} is being deleted")

    @router.post(
        "/{workload_id}/suspend",
        status_code=202,
        operation_id=f"suspend{noun}",
        dependencies=[there(Resource.WORKLOADS, Action.UPDATE)],
    )
    async def suspend(workload_id: str, yard: YardNow, actor: ActorNow, grace: Grace = None) -> Response:
        """Stop it. `grace`: seconds between SIGTERM and SIGKILL."""
        workload = await fetch(workload_id, yard)
        await ask.stop(yard, workload_id, actor, grace)
        return accepted(f"{workload.name} is being stopped")

    @router.post(
        "/{workload_id}/resume",
        status_code=202,
        operation_id=f"resume{noun}",
        dependencies=[there(Resource.WORKLOADS, Action.UPDATE, trusted=True)],
    )
    async def resume(workload_id: str, yard: YardNow, actor: ActorNow) -> Response:
        """Run it once more: a new attempt."""
        workload = await fetch(workload_id, yard)
        await ask.resume(yard, workload_id, actor)
        return accepted(f"{workload.name} is being resumed")


def accepted(message: str) -> Response:
    """`{code: 202, message}`"""
    return JSONResponse({"code": 202, "message": message}, status_code=202)


_add_actions(trainings, Kind.TRAINING)
_add_actions(distributed, Kind.DISTRIBUTED)
_add_actions(workspaces, Kind.WORKSPACE)
routers = (trainings, distributed, workspaces)
