"""What the user asked for: the fields of the Run:ai v1 spec, plus the few that it has no word for (`torchyard`).

Knows names and shapes only; whether a spec may run is the business of policy.
Source of the fields: Run:ai control plane API 2.24.
"""

import enum
import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from torchyard.domain.model import Model, Name, Whole, sized, understood
from torchyard.domain.quantities import parse_duration
from torchyard.domain.storage import Storage

_SECRET = re.compile(
    r"(TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$"
    r"|(^|[_.-])(PASS|PAT|DSN|ACCESS_KEY_ID)$"
    r"|(^|[_.-])(AUTHORIZATION|BEARER|COOKIES?|CREDENTIALS?|PASSWORD|PASSPHRASE|PRIVATE_KEY|SECRET|WEBHOOK)([_.-]|$)",
    re.IGNORECASE,
)
"""Words that stand at the end of a name; short ones that are whole words there; words that tell wherever they stand."""
SEALED = "(sealed)"
"""Stands in a remembered spec for a value that is kept sealed elsewhere."""
STOP_GRACE = 30.0
"""Seconds between SIGTERM and SIGKILL unless the spec says otherwise; Kubernetes' default."""


def looks_secret(name: str) -> bool:
    """Is a variable of this name likely to hold something that must not be shown or kept in clear?"""
    return _SECRET.search(name) is not None


class Kind(enum.StrEnum):
    """What a workload is: one replica, several, or one interactive replica with an end."""

    TRAINING = "training"
    DISTRIBUTED = "distributed"
    WORKSPACE = "workspace"


class KeyRef(Model):
    """A key of a secret, config map or user credential."""

    name: str
    key: str | None = None


class FieldRef(Model):
    """A field of the pod, such as `metadata.name`."""

    path: str


class EnvironmentVariable(Model):
    """One variable: a name and one of value, secret, configMap, podFieldRef, userCredential."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=255)]
    value: str | None = None
    secret: KeyRef | None = None
    config_map: KeyRef | None = None
    pod_field_ref: FieldRef | None = None
    user_credential: KeyRef | None = None
    exclude: bool | None = None
    description: str | None = None


class ExtendedResource(Model):
    """A resource by its Kubernetes name."""

    resource: str
    quantity: str | None = None
    exclude: bool | None = None


class Compute(Model):
    """Devices, cores and memory of each replica. Sizes are Kubernetes quantities."""

    gpu_devices_request: Annotated[Whole, Field(ge=0)] | None = None
    gpu_request_type: Literal["portion", "memory", "count"] | None = None
    gpu_portion_request: Annotated[float, Field(ge=0)] | None = None
    gpu_portion_limit: Annotated[float, Field(ge=0)] | None = None
    gpu_memory_request: str | None = None
    gpu_memory_limit: str | None = None
    cpu_core_request: Annotated[float, Field(ge=0)] | None = None
    cpu_core_limit: Annotated[float, Field(ge=0)] | None = None
    cpu_memory_request: str | None = None
    cpu_memory_limit: str | None = None
    large_shm_request: bool | None = None
    extended_resources: tuple[ExtendedResource, ...] | None = None

    _sizes = field_validator("gpu_memory_request", "gpu_memory_limit", "cpu_memory_request", "cpu_memory_limit")(sized)


class PullSecret(Model):
    """A secret that lets the image be pulled."""

    name: str
    user_credential: bool | None = None
    exclude: bool | None = None


class Toleration(Model):
    """As in Kubernetes."""

    name: str | None = None
    operator: Literal["Equal", "Exists"] | None = None
    key: str | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule", "Any"] | None = None
    seconds: int | None = None


class Label(Model):
    """A label or annotation."""

    name: Annotated[str, Field(max_length=316)]
    value: str | None = None
    exclude: bool | None = None


class Port(Model):
    """A port of the replica."""

    container: Annotated[Whole, Field(ge=1, le=65535)]
    service_type: Literal["LoadBalancer", "NodePort", "ClusterIP"] | None = None
    external: int | None = None
    tool_type: str | None = None
    tool_name: str | None = None
    name: str | None = None


class Security(Model):
    """Who the processes are and what they may do."""

    uid_gid_source: Literal["fromTheImage", "fromIdpToken", "custom"] | None = None
    run_as_uid: int | None = None
    run_as_gid: int | None = None
    supplemental_groups: str | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    capabilities: tuple[str, ...] | None = None
    host_ipc: bool | None = None
    host_network: bool | None = None
    seccomp_profile_type: Literal["RuntimeDefault", "Unconfined", "Localhost"] | None = None


class ReplicaSpec(Model):
    """The fields that a master's own spec may have: all but those of the group."""

    command: Annotated[str, Field(min_length=1)] | None = None
    args: Annotated[str, Field(min_length=1)] | None = None
    image: Annotated[str, Field(min_length=1)] | None = None
    image_pull_policy: Literal["Always", "Never", "IfNotPresent"] | None = None
    image_pull_secrets: tuple[PullSecret, ...] | None = None
    working_dir: str | None = None
    create_home_dir: bool | None = None
    tty: bool | None = None
    stdin: bool | None = None
    environment_variables: tuple[EnvironmentVariable, ...] = ()
    compute: Compute = Compute()
    storage: Storage = Storage()
    security: Security | None = None
    node_pools: tuple[str, ...] | None = None
    node_type: str | None = None
    node_affinity_required: dict[str, Any] | None = None
    pod_affinity: dict[str, Any] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    priority_class: Literal["very-low", "low", "medium-low", "medium", "medium-high", "high", "very-high"] | None = None
    preemptibility: Literal["preemptible", "non-preemptible"] | None = None
    backoff_limit: Annotated[Whole, Field(ge=0, le=100)] = 6
    restart_policy: Literal["Always", "Never", "OnFailure"] | None = None
    auto_deletion_time_after_completion_seconds: Annotated[Whole, Field(ge=0)] | None = None
    terminate_after_preemption: bool | None = None
    termination_grace_period_seconds: Annotated[Whole, Field(ge=0, le=7 * 86400)] | None = None
    ports: tuple[Port, ...] | None = None
    exposed_urls: tuple[dict[str, Any], ...] | None = None
    related_urls: tuple[dict[str, Any], ...] | None = None
    probes: dict[str, Any] | None = None
    labels: tuple[Label, ...] | None = None
    annotations: tuple[Label, ...] | None = None
    category: str | None = None


class Spec(ReplicaSpec):
    """The spec of a workload, with the fields of the group."""

    distributed_framework: Literal["MPI", "PyTorch", "TF", "XGBoost", "JAX", "Ray"] | None = None
    num_workers: Annotated[Whole, Field(ge=0, le=10000)] | None = None
    min_replicas: Annotated[Whole, Field(ge=1)] | None = None
    max_replicas: Annotated[Whole, Field(ge=1)] | None = None
    clean_pod_policy: Literal["None", "All", "Running"] | None = None
    slots_per_worker: int | None = None
    ssh_auth_mount_path: str | None = None
    mpi_launcher_creation_policy: Literal["AtStartup", "WaitForWorkersReady"] | None = None
    parallelism: int | None = None
    completions: int | None = None


class Isolation(enum.StrEnum):
    """How far a local replica is kept from the machine."""

    PROCESS = "process"
    SANDBOX = "sandbox"
    CONTAINER = "container"


class ProgressSpec(Model):
    """How to read progress from the log when the guess is wrong: groups `step`, `total`, `loss` of a pattern."""

    total: Annotated[Whole, Field(ge=1, le=10**15)] | None = None
    pattern: Annotated[str, Field(max_length=1000)] | None = None


class Notify(Model):
    """What to run or call when the workload ends, fails or starts waiting."""

    command: str | None = None
    webhook: Annotated[str, Field(pattern=r"^https?://")] | None = None

    @property
    def shown(self) -> "Notify":
        """As people may see it: what follows the `?` of an address often lets its bearer in."""
        address, mark, _ = (self.webhook or "").partition("?")
        return self.model_copy(update={"webhook": f"{address}?***"}) if mark else self


class Extras(Model):
    """What Run:ai's spec has no word for."""

    code: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    """Content hash of an uploaded folder; in spec files the path of the folder, which the CLI uploads."""
    isolation: Isolation | None = None
    pending_deadline: str = "15m"
    progress: ProgressSpec | None = None
    resume_from: str | None = None
    """`WORKLOAD[:FILE]`: mount that workload's claim and set TORCHYARD_RESUME_FROM."""
    trust_exit_code: bool = False
    max_time: str | None = None
    notify: Notify | None = None
    no_master: bool = False

    @field_validator("pending_deadline", "max_time")
    @classmethod
    def _durations(cls, value: str | None) -> str | None:
        if value is not None:
            understood(parse_duration, value)
        return value


class Submission(Model):
    """A workload as submitted: a kind, a name, where it goes and its spec. Project and cluster are names."""

    kind: Kind
    name: Name | None = None
    project: str = "default"
    cluster: str = "local"
    spec: Spec
    master_spec: ReplicaSpec | None = None
    torchyard: Extras = Extras()

    @property
    def has_master(self) -> bool:
        """Distributed workloads have a master unless they ask for workers only."""
        return self.kind is Kind.DISTRIBUTED and not self.torchyard.no_master

    @property
    def replicas(self) -> tuple[str, ...]:
        """Names of the replicas, in rank order: `master-0`, `worker-0`, ..."""
        match self.kind:
            case Kind.DISTRIBUTED:
                workers = self.spec.num_workers if self.spec.num_workers is not None else 1
                return ("master-0",) * self.has_master + tuple(f"worker-{i}" for i in range(workers))
            case Kind.TRAINING | Kind.WORKSPACE:
                return ("worker-0",)

    def replica_field(self, replica: str) -> Literal["spec", "masterSpec"]:
        """Where the spec of one replica stands: the master's own where there is one."""
        return "masterSpec" if replica.startswith("master-") and self.master_spec is not None else "spec"

    def replica_spec(self, replica: str) -> ReplicaSpec:
        """The spec of one replica."""
        if self.replica_field(replica) == "masterSpec":
            assert self.master_spec is not None
            return self.master_spec
        return self.spec

    def devices_of(self, replica: str) -> int:
        """Devices that one replica asks for."""
        return self.replica_spec(replica).compute.gpu_devices_request or 0

    @property
    def grace(self) -> float:
        """Seconds between SIGTERM and SIGKILL when it is stopped."""
        asked = self.spec.termination_grace_period_seconds
        return STOP_GRACE if asked is None else float(asked)

    @property
    def devices(self) -> int:
        """Devices that all replicas ask for together."""
        return sum(self.devices_of(replica) for replica in self.replicas)
