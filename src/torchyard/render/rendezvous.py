"""The environment that makes a bare `torchrun` right in every replica, as far as it does not depend on the engine.

Addresses, ports, device numbers, the folder of the ranks' logs and network interfaces are the engine's to add.
"""

from torchyard.domain.command import is_torchrun
from torchyard.domain.spec import SEALED, EnvironmentVariable, ReplicaSpec, Submission

PREFIX = "\x1e[${rank}] "
"""Begins each line of a rank that torchrun tees: a control character that no training prints, so it can be split on."""

IDENTITY = (
    "TORCHYARD_WORKLOAD",
    "TORCHYARD_WORKLOAD_ID",
    "TORCHYARD_PROJECT",
    "TORCHYARD_ATTEMPT",
    "TORCHYARD_ATTEMPT_NUMBER",
    "TORCHYARD_REPLICA",
)
"""Variables that torchyard finds its processes by: a spec cannot set them."""


def name_of(submission: Submission) -> str:
    """The workload's name; a draft may have none yet."""
    return submission.name or "workload"


def rendezvous(
    submission: Submission, replica: str, argv: tuple[str, ...], attempt: int, grace: float
) -> dict[str, str]:
    """Variables for torchrun (PET_*) and, where there are several replicas, for scripts that meet without it."""
    replicas = submission.replicas
    rank = replicas.index(replica)
    env = {
        "PET_NNODES": str(len(replicas)),
        "PET_NODE_RANK": str(rank),
        "PET_NPROC_PER_NODE": str(ranks_of(submission, replica)),
        "PET_RDZV_ID": f"{name_of(submission)}-{attempt}",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(int(grace)),
    }
    if is_torchrun(argv):
        env["PET_REDIRECTS"] = "3"
    else:
        # Their torchrun's output may be piped on, so it has to stay where it is.
        env["PET_TEE"] = "3"
        env["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = PREFIX
    if len(replicas) > 1:
        env["RANK"] = str(rank)
        env["WORLD_SIZE"] = str(sum(ranks_of(submission, other) for other in replicas))
    return env


def ranks_of(submission: Submission, replica: str) -> int:
    """Training processes of one replica: one for each device, one where there is none."""
    return max(1, submission.devices_of(replica))


def identity(submission: Submission, replica: str, workload_id: str, attempt: int) -> dict[str, str]:
    """Who the process is: torchyard's names, and Run:ai's for the same."""
    name = name_of(submission)
    return {
        "TORCHYARD_WORKLOAD": name,
        "TORCHYARD_WORKLOAD_ID": workload_id,
        "TORCHYARD_PROJECT": submission.project,
        "TORCHYARD_ATTEMPT": f"{workload_id}-{attempt}",
        "TORCHYARD_ATTEMPT_NUMBER": str(attempt),
        "TORCHYARD_REPLICA": replica,
        "RUNAI_PROJECT": submission.project,
        "RUNAI_JOB_NAME": name,
        "RUNAI_JOB_UUID": workload_id,
        "RUNAI_NUM_OF_GPUS": str(submission.devices_of(replica)),
    }


def spec_variables(submission: Submission, replica: str, spec: ReplicaSpec) -> dict[str, str]:
    """What the spec sets itself. Sealed values travel another way, never through a plan."""
    return {
        variable.name: _value(variable, submission, replica)
        for variable in spec.environment_variables
        if not variable.exclude and variable.value != SEALED and variable.name not in IDENTITY
    }


def _value(variable: EnvironmentVariable, submission: Submission, replica: str) -> str:
    match variable.pod_field_ref.path if variable.pod_field_ref else None:
        case "metadata.name":
            return f"{name_of(submission)}-{replica}"
        case "metadata.namespace":
            return submission.project
    return variable.value or ""
