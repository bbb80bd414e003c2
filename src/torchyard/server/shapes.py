"""Workloads as the JSON of the Run:ai v1 dialect, plus torchyard's own fields. Pure; knows neither store nor HTTP."""

import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from torchyard.domain.event import Event
from torchyard.domain.finding import Finding
from torchyard.domain.model import Model
from torchyard.domain.observation import RankSeen, ReplicaSeen, ReplicaState
from torchyard.domain.project import DEFAULT_ID, Cluster, Department, Project
from torchyard.domain.spec import Extras, Kind
from torchyard.domain.workload import Attempt, Progress, Workload
from torchyard.policy.queue import PRIORITY

TENANT_ID = 1

Json = dict[str, Any]

_CATEGORY = {Kind.TRAINING: "Train", Kind.DISTRIBUTED: "Train", Kind.WORKSPACE: "Build"}


@dataclass(frozen=True, slots=True)
class Places:
    """Projects, their departments and clusters: the API speaks of them by id, workloads by name."""

    projects: Mapping[str, Project]
    clusters: Mapping[str, Cluster]
    departments: Mapping[str, Department]
    """By id: that is how projects name theirs."""

    def department(self, project: str) -> Department:
        """The department of a project; the default one when the project is gone."""
        found = self.projects.get(project)
        return self.departments[found.department_id if found else DEFAULT_ID]

    def namespace(self, project: str) -> str:
        """The namespace of a project; its name when it is gone."""
        found = self.projects.get(project)
        return found.namespace if found else project

    def project_id(self, name: str) -> str:
        """Id of a project; empty when it is gone."""
        project = self.projects.get(name)
        return project.id if project else ""

    def cluster_id(self, name: str) -> str:
        """Id of a cluster; empty when it is gone."""
        cluster = self.clusters.get(name)
        return cluster.id if cluster else ""


def moment(at: datetime | None) -> str | None:
    """`2026-12-01T12:00:00.000001Z`"""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def compact(value: Any) -> Any:
    """The value without empty lists and objects in its objects."""
    match value:
        case dict():
            smaller = {key: compact(item) for key, item in value.items()}
            return {key: item for key, item in smaller.items() if item not in (None, {}, [])}
        case list():
            return [compact(item) for item in value]
    return value


def model(value: Model | None) -> Json | None:
    """A model with the names of the API, without what was left out."""
    return None if value is None else compact(value.model_dump(mode="json", by_alias=True, exclude_none=True))


def finding(f: Finding) -> Json:
    return {"rule": f.rule, "severity": f.severity, "where": f.where, "message": f.message, "fix": f.fix}


def progress(p: Progress | None) -> Json | None:
    """How far it is. A loss that is not a number is null: JSON has no word for it."""
    if p is None:
        return None
    return {
        "step": p.step,
        "total": p.total,
        "unit": p.unit,
        "loss": p.loss if p.loss is not None and math.isfinite(p.loss) else None,
        "eta": p.eta if p.eta is not None and math.isfinite(p.eta) else None,
        "at": moment(p.at),
        "attempt": p.attempt,
    }


def row(w: Workload, p: Progress | None, places: Places, now: datetime) -> Json:
    """A workload as the list shows it."""
    spec = w.submission.spec
    replicas = w.submission.replicas
    active = w.attempt if w.active else None
    devices = w.submission.devices
    since = moment(w.phase_at)
    return {
        "id": w.id,
        "name": w.name,
        "type": w.kind,
        "source": "Control-plane",
        "priority": spec.priority_class or PRIORITY,
        "priorityClassName": spec.priority_class or PRIORITY,
        "clusterId": places.cluster_id(w.cluster),
        "clusterName": w.cluster,
        "projectId": places.project_id(w.project),
        "projectName": w.project,
        "departmentId": places.department(w.project).id,
        "departmentName": places.department(w.project).name,
        "tenantId": TENANT_ID,
        "namespace": places.namespace(w.project),
        "submittedBy": w.created_by,
        "createdAt": moment(w.created_at),
        "updatedAt": since,
        "completedAt": moment(w.completed_at),
        "deletedAt": moment(w.deleted_at),
        "phase": w.phase,
        "phaseMessage": w.reason,
        "phaseUpdatedAt": since,
        "desiredPhase": w.desired,
        "k8sPhase": w.phase,
        "k8sPhaseUpdatedAt": since,
        "conditions": [],
        "category": spec.category or _CATEGORY[w.kind],
        "preemptible": spec.preemptibility != "non-preemptible",
        "distributedFramework": spec.distributed_framework,
        "images": [spec.image] if spec.image else [],
        "command": spec.command,
        "arguments": spec.args,
        "runningPods": _running(active),
        "requestedPods": {"number": len(replicas)},
        "workloadRequestedResources": {"gpu": {"request": devices}},
        "allocatedResources": {"gpu": active.devices if active else 0},
        "datasources": [
            {"type": "pvc", "name": pvc.claim_name} for pvc in spec.storage.pvc if pvc.claim_name is not None
        ],
        "actionsSupport": {"delete": True, "suspend": True},
        "totalRunningTimeSeconds": int(_run_seconds(w, now)),
        "replicas": len(replicas),
        "devices": devices,
        "attempt": w.attempts,
        "progress": progress(p),
    }


def detail(w: Workload, p: Progress | None, attempts: Iterable[Attempt], places: Places, now: datetime) -> Json:
    """A workload with all that is known of it but its events and logs."""
    return row(w, p, places, now) | {
        "spec": model(w.submission.spec),
        "masterSpec": model(w.submission.master_spec),
        "torchyard": model(_extras(w.submission.torchyard)),
        "findings": [finding(f) for f in w.findings],
        "attempts": [attempt_summary(a) for a in attempts],
        "pendingSchedulingMessages": [],
    }


def submission(w: Workload, requested: str | None, places: Places) -> Json:
    """A workload as the answer to its submission, and as the routes of its kind show it."""
    return {
        "name": w.name,
        "requestedName": requested or w.name,
        "workloadId": w.id,
        "projectId": places.project_id(w.project),
        "departmentId": places.department(w.project).id,
        "clusterId": places.cluster_id(w.cluster),
        "createdBy": w.created_by,
        "createdAt": moment(w.created_at),
        "deletedAt": moment(w.deleted_at),
        "desiredPhase": w.desired,
        "actualPhase": w.phase,
        "spec": model(w.submission.spec),
        "masterSpec": model(w.submission.master_spec),
        "torchyard": model(_extras(w.submission.torchyard)),
        "findings": [finding(f) for f in w.findings],
    }


def _extras(e: Extras) -> Extras:
    return e if e.notify is None else e.model_copy(update={"notify": e.notify.shown})


def attempt_summary(a: Attempt) -> Json:
    """An attempt without its replicas."""
    return {
        "number": a.number,
        "reason": a.reason,
        "devices": a.devices,
        "createdAt": moment(a.created_at),
        "startedAt": moment(a.running_at),
        "endedAt": moment(a.ended_at),
        "withdrawn": a.withdrawn,
        "cause": a.diagnosis.cause if a.diagnosis else None,
        "sentence": a.diagnosis.sentence if a.diagnosis else None,
    }


def attempt(a: Attempt) -> Json:
    """An attempt with its replicas and ranks, as last seen."""
    return attempt_summary(a) | {"replicas": [replica(r) for r in a.replicas]}


def replica(r: ReplicaSeen) -> Json:
    return {
        "name": r.name,
        "state": r.state,
        "reason": r.reason,
        "message": r.message,
        "lost": r.lost,
        "node": r.node,
        "pid": r.pid,
        "devices": list(r.devices),
        "startedAt": moment(r.started_at),
        "endedAt": moment(r.ended_at),
        "code": r.code,
        "signal": r.signal,
        "ranks": [rank(one) for one in r.ranks],
    }


def rank(r: RankSeen) -> Json:
    return {
        "rank": r.rank,
        "localRank": r.local_rank,
        "pid": r.pid,
        "restart": r.restart,
        "startedAt": moment(r.started_at),
        "endedAt": moment(r.ended_at),
        "code": r.code,
        "signal": r.signal,
    }


def pods(w: Workload, places: Places) -> list[Json]:
    """The replicas of the attempt of now, as pods."""
    return [] if w.attempt is None else [_pod(w, w.attempt, r, places) for r in w.attempt.replicas]


def _pod(w: Workload, a: Attempt, r: ReplicaSeen, places: Places) -> Json:
    spec = w.submission.replica_spec(r.name)
    image = spec.image or ""
    return {
        "id": str(uuid.uuid5(uuid.UUID(w.id), f"{a.number}/{r.name}")),
        "name": f"{w.name}-{r.name}",
        "replica": r.name,
        "attempt": a.number,
        "workloadId": w.id,
        "workloadName": w.name,
        "projectName": w.project,
        "clusterId": places.cluster_id(w.cluster),
        "tenantId": TENANT_ID,
        "priorityClassName": spec.priority_class or PRIORITY,
        "nodeName": r.node,
        "createdAt": moment(a.created_at),
        "completedAt": moment(r.ended_at),
        "deletedAt": None,
        "updatedAt": moment(r.ended_at or r.started_at or a.created_at),
        "containers": [{"name": r.name, "image": image, "startedAt": moment(r.started_at)}],
        "requestedResources": {"gpu": {"request": w.submission.devices_of(r.name)}},
        "k8sPhase": _pod_phase(r),
        "k8sPhaseUpdatedAt": moment(r.ended_at or r.started_at or a.created_at),
    }


def _pod_phase(r: ReplicaSeen) -> str:
    match r.state:
        case ReplicaState.PREPARED | ReplicaState.STARTING:
            return "Pending"
        case ReplicaState.RUNNING:
            return "Running"
        case ReplicaState.ENDED:
            return "Failed" if r.failed else "Succeeded"
        case ReplicaState.LOST:
            return "Unknown"


def event(e: Event, number: int, w: Workload, places: Places) -> Json:
    """An event; `number` is its place in the store."""
    return {
        "id": str(uuid.uuid5(uuid.UUID(w.id), f"event {number}")),
        "createdAt": moment(e.at),
        "type": e.type,
        "reason": e.reason,
        "message": e.message,
        "source": "torchyard",
        "attempt": e.attempt,
        "replica": e.replica,
        "clusterId": places.cluster_id(w.cluster),
        "involvedObject": {
            "uid": w.id,
            "kind": "Pod" if e.replica else "Workload",
            "name": f"{w.name}-{e.replica}" if e.replica else w.name,
            "namespace": places.namespace(w.project),
        },
    }


def record(e: Event, number: int, w: Workload, places: Places) -> Json:
    """An event in the history: changes of phase are records of their own kind."""
    at = moment(e.at)
    if e.reason != "Phase":
        return {
            "meta": {"creationTimestamp": at, "type": "Event"},
            "spec": {"event": event(e, number, w, places)},
        }
    phase, _, why = e.message.partition(": ")
    return {
        "meta": {"creationTimestamp": at, "type": "PhaseUpdate"},
        "spec": {"phaseUpdate": {"phase": phase, "phaseMessage": why}},
    }


def _running(active: Attempt | None) -> int:
    return sum(r.state is ReplicaState.RUNNING for r in active.replicas) if active else 0


def _run_seconds(w: Workload, now: datetime) -> float:
    started = w.attempt.running_at if w.attempt is not None and w.active else None
    return w.run_seconds + ((now - started).total_seconds() if started else 0.0)
