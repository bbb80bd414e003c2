"""Takes a submission: check, plan, remember, wake the loop. Nothing is created when anything is wrong."""

import asyncio
import hashlib
import json
import uuid
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from torchyard.control import facts, plans
from torchyard.control.housekeeping import disk_warning
from torchyard.control.turn import now
from torchyard.control.yard import Actor, Yard
from torchyard.domain.asset import Claim
from torchyard.domain.errors import Conflict, Invalid, NotFound, Problem
from torchyard.domain.event import Event
from torchyard.domain.finding import Finding, Severity
from torchyard.domain.isolation import specs_of
from torchyard.domain.launch import LaunchPlan, ResumeSource
from torchyard.domain.model import MAX_NAME
from torchyard.domain.spec import SEALED, EnvironmentVariable, ReplicaSpec, Submission, looks_secret
from torchyard.domain.workload import Phase, Workload
from torchyard.policy.admit import admit
from torchyard.render.launch import world
from torchyard.store import audit, claims, events, idempotency, projects, sealed, workloads
from torchyard.store.database import read, write

REPLAY_WINDOW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A submission and what travels with it. `environment` is the caller's own; it is sealed, never shown."""

    submission: Submission
    environment: dict[str, str]
    idempotency_key: str | None = None
    prefix: bool = False
    """The name is the beginning of a name; a number is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The workload as remembered. `replayed`: it was there already, from the same request."""

    workload: Workload
    findings: tuple[Finding, ...]
    sentence: str
    replayed: bool = False


async def submit(yard: Yard, request: Request, actor: Actor) -> Submitted:
    """Accept a workload. Raises Invalid with all problems, Conflict for a taken name."""
    digest = _digest(request)
    replay = await asyncio.to_thread(_replay, yard, request, actor, digest)
    if replay is not None:
        return _answer(replay)
    findings, _ = await check(yard, request.submission)
    await asyncio.to_thread(_check_name, yard, request, actor, digest)
    fresh = await asyncio.to_thread(_new_claims, yard, request.submission, actor)
    for claim in fresh:
        await yard.engine(request.submission.cluster).make_claim(claim.project, claim.claim_name)
    clean, secret = seal_variables(request.submission)
    made = await asyncio.to_thread(_insert, yard, request, clean, secret, findings, fresh, actor, digest)
    if not made.replayed:
        yard.board.put(made.workload)
        yard.feed.publish(made.workload.id, "workload")
        yard.bell.queue.set()
    return made


async def check(yard: Yard, submission: Submission) -> tuple[tuple[Finding, ...], LaunchPlan]:
    """The findings and the plan of a submission. Raises Invalid when it may not run."""
    source, unknown = await _source(yard, submission)
    view = await facts.view(yard, submission, source)
    findings = admit(view)
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if errors:
        problems = tuple(Problem(field=f.where, details=f.message, rule=f.rule) for f in errors)
        fixes = "; ".join(f.fix for f in errors if f.fix)
        raise Invalid("; ".join(f.message for f in errors), fixes or None, problems)
    if unknown is not None:
        raise unknown
    nearly_full = await asyncio.to_thread(disk_warning, yard)
    if nearly_full is not None:
        findings = (*findings, nearly_full)
    return findings, await plans.draft(yard, submission, source)


async def _source(yard: Yard, submission: Submission) -> tuple[ResumeSource | None, Invalid | None]:
    """The checkpoint to resume from, or why there is none; the rules may have more to say first."""
    try:
        return await asyncio.to_thread(plans.resume_source, yard, submission), None
    except Invalid as refusal:
        return None, refusal


def seal_variables(submission: Submission) -> tuple[Submission, dict[str, dict[str, str]]]:
    """The submission without the values of variables whose names look like secrets, and these values by spec field."""
    secret: dict[str, dict[str, str]] = {}

    def hide(spec: ReplicaSpec, field: str) -> tuple[EnvironmentVariable, ...]:
        shown = []
        for variable in spec.environment_variables:
            if variable.value is not None and variable.value != SEALED and looks_secret(variable.name):
                if not variable.exclude:
                    secret.setdefault(field, {})[variable.name] = variable.value
                shown.append(variable.model_copy(update={"value": SEALED}))
            else:
                shown.append(variable)
        return tuple(shown)

    spec = submission.spec.model_copy(update={"environment_variables": hide(submission.spec, "spec")})
    master = submission.master_spec
    if master is not None:
        master = master.model_copy(update={"environment_variables": hide(master, "masterSpec")})
    return submission.model_copy(update={"spec": spec, "master_spec": master}), secret


def _check_name(yard: Yard, request: Request, actor: Actor, digest: str) -> None:
    """Before anything is made for a workload that cannot be. Raises Conflict for a taken name."""
    name = request.submission.name
    if name is None or request.prefix:
        return
    with read(yard.database) as connection:
        known = workloads.find(connection, request.submission.project, name) is not None
        # The same request may have come twice at once.
        if known and _made_before(connection, request, actor, digest) is None:
            raise workloads.taken(name, request.submission.project)


def _new_claims(yard: Yard, submission: Submission, actor: Actor) -> tuple[Claim, ...]:
    """Claims that the submission brings with it: not existing ones, described by a claimInfo."""
    with read(yard.database) as connection:
        known = {claim.claim_name for claim in claims.listing(connection, submission.project)}
    found: dict[str, Claim] = {}
    for spec in specs_of(submission):
        for pvc in spec.storage.pvc:
            if pvc.claim_name and pvc.claim_name not in known and pvc.claim_info is not None and not pvc.existing_pvc:
                found[pvc.claim_name] = Claim(
                    id=str(uuid.uuid4()),
                    name=pvc.claim_name,
                    claim_name=pvc.claim_name,
                    project=submission.project,
                    path=pvc.path,
                    info=pvc.claim_info,
                    created_at=now(),
                    created_by=actor.name,
                )
    return tuple(found.values())


def _digest(request: Request) -> str:
    """Equal for requests that ask for the same thing."""
    body = request.submission.model_dump(mode="json", by_alias=True)
    text = json.dumps([body, sorted(request.environment.items()), request.prefix], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _replay(yard: Yard, request: Request, actor: Actor, digest: str) -> Workload | None:
    with read(yard.database) as connection:
        return _made_before(connection, request, actor, digest)


def _made_before(connection: Connection, request: Request, actor: Actor, digest: str) -> Workload | None:
    """The workload that this very request made before. Raises Conflict for a key that was used for another request."""
    submission = request.submission
    if request.idempotency_key is not None:
        known = idempotency.recall(connection, request.idempotency_key, actor.name, now() - idempotency.WINDOW)
        if known is None:
            return None
        if known.body_hash != digest:
            raise Conflict("this idempotency key was used for another request", "send a new key with each request")
        return workloads.fetch(connection, known.workload_id)
    if submission.name is None or request.prefix:
        return None
    old = workloads.find(connection, submission.project, submission.name)
    if old is None or old.phase.terminal or old.desired != "Running" or now() - old.created_at > REPLAY_WINDOW:
        return None
    known = idempotency.recall(connection, f"body:{old.id}", actor.name, now() - REPLAY_WINDOW)
    return old if known is not None and known.body_hash == digest else None


def _insert(
    yard: Yard,
    request: Request,
    submission: Submission,
    secret: dict[str, dict[str, str]],
    findings: tuple[Finding, ...],
    fresh: tuple[Claim, ...],
    actor: Actor,
    digest: str,
) -> Submitted:
    moment = now()
    workload_id = str(uuid.uuid4())
    caller = request.environment
    blob = plans.seal(yard, workload_id, caller, secret) if caller or secret else None
    with write(yard.database) as connection:
        # Asked again where nobody else writes: the same request may have come twice at once.
        before = _made_before(connection, request, actor, digest)
        if before is not None:
            return _answer(before)
        if projects.find(connection, submission.project) is None:
            raise NotFound(f"project {submission.project} has just been deleted", "see `torchyard project list`")
        name = submission.name
        if name is None or request.prefix:
            name = _next_name(connection, submission.project, name or "train")
        workload = Workload(
            id=workload_id,
            name=name,
            kind=submission.kind,
            project=submission.project,
            cluster=submission.cluster,
            submission=submission.model_copy(update={"name": name}),
            created_at=moment,
            created_by=actor.name,
            phase=Phase.CREATING,
            phase_at=moment,
            reason=f"submitted by {actor.name}",
            findings=findings,
            resume=plans.resume_of(connection, submission),
            sealed=blob is not None,
        )
        workloads.insert(connection, workload)
        known = {claim.claim_name for claim in claims.listing(connection, submission.project)}
        for claim in fresh:
            if claim.claim_name not in known:
                claims.insert(connection, claim)
        if blob is not None:
            sealed.put(connection, workload_id, blob)
        first = Event(reason="Phase", message=f"Creating: {workload.reason}", at=moment)
        events.append(connection, workload_id, (first,))
        key = request.idempotency_key or f"body:{workload_id}"
        idempotency.remember(connection, key, actor.name, workload_id, digest, moment)
        audit.append(connection, actor.name, "submit", f"workload/{name}", moment)
    return _answer(workload, replayed=False)


def _next_name(connection: Connection, project: str, prefix: str) -> str:
    name = workloads.next_name(connection, project, prefix)
    if len(name) > MAX_NAME:
        raise Invalid(
            f"the name {name[:100]!r} has {len(name)} characters, and at most {MAX_NAME} are allowed",
            "give a shorter one: a number is added to it",
        )
    return name


def _answer(workload: Workload, replayed: bool = True) -> Submitted:
    return Submitted(
        workload=workload, findings=workload.findings, sentence=world(workload.submission), replayed=replayed
    )
