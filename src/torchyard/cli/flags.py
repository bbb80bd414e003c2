"""The flags of submit: one table from flag to field of the request body. Knows names and shapes, asks nothing.

Names are those of Run:ai's command line v2, then torchyard's own.
"""

from dataclasses import dataclass
from typing import Any

from torchyard.cli import readers, values
from torchyard.cli.readers import Read, compound, one_of, pair


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: its names, the field it fills (`[]`: each use adds to a list), how its value is read.

    A flag that takes no value has `read` None and sets `value`.
    """

    names: str
    field: str
    help: str
    read: Read | None = str
    value: Any = True
    shown: str = "TEXT"

    @property
    def many(self) -> bool:
        """It may be given more than once."""
        return self.field.endswith("[]")


@dataclass(frozen=True, slots=True)
class Section:
    """Flags under one title of the help."""

    title: str
    flags: tuple[Flag, ...]
    distributed: bool = False
    """They make sense for distributed training only."""


_RESTART = one_of("Always", "OnFailure", "Never")
_QUANTITY = pair("resource", "quantity")

IMAGE_AND_COMMAND = Section(
    "Image and command",
    (
        Flag("-i --image", "spec.image", "Container image; without one the machine's own Python is used."),
        Flag(
            "--image-pull-policy",
            "spec.imagePullPolicy",
            "When the image is pulled: Always, IfNotPresent or Never.",
            one_of("Always", "IfNotPresent", "Never"),
        ),
        Flag(
            "--image-pull-my-credentials",
            "spec.imagePullSecrets[]",
            "Credential for the image's registry: type=dockerRegistry,name=NAME.",
            values.pull_secret,
        ),
        Flag("--working-dir", "spec.workingDir", "Working folder inside the replica.", shown="PATH"),
        Flag("--create-home-dir", "spec.createHomeDir", "Make a home folder for the user.", None),
        Flag("--stdin", "spec.stdin", "Keep stdin open.", None),
        Flag("-t --tty", "spec.tty", "Give it a terminal.", None),
        Flag(
            "-e --environment-variable --environment",
            "spec.environmentVariables[]",
            "Variable for every replica: NAME=VALUE.",
            pair("name", "value"),
            shown="NAME=VALUE",
        ),
        Flag(
            "--env-secret",
            "spec.environmentVariables[]",
            "Variable from a secret: VAR=SECRET,key=KEY.",
            readers.from_secret,
        ),
        Flag(
            "--env-pod-field-ref",
            "spec.environmentVariables[]",
            "Variable from a field of the pod: VAR=metadata.name.",
            readers.from_field,
        ),
    ),
)
WORKERS = Section(
    "Workers",
    (
        Flag(
            "--workers", "spec.numWorkers", "Workers beside the master; N means N+1 replicas.", readers.whole, shown="N"
        ),
        Flag("--min-replicas", "spec.minReplicas", "Smallest size of an attempt.", readers.whole, shown="N"),
        Flag("--max-replicas", "spec.maxReplicas", "Largest size of an attempt.", readers.whole, shown="N"),
        Flag("--no-master", "torchyard.noMaster", "Workers only: N workers are N replicas.", None),
        Flag(
            "--clean-pod-policy",
            "spec.cleanPodPolicy",
            "Pods to delete at the end: None, All or Running.",
            one_of("None", "All", "Running"),
        ),
    ),
    distributed=True,
)
RETRIES = Section(
    "Retries and time",
    (
        Flag(
            "--backoff-limit",
            "spec.backoffLimit",
            "How often a failed attempt is tried again.",
            readers.whole,
            shown="N",
        ),
        Flag("--restart-policy", "spec.restartPolicy", "Always, OnFailure or Never.", _RESTART),
        Flag(
            "--max-time", "torchyard.maxTime", "Stop it after this run time: 90m, 2h.", readers.duration, shown="TIME"
        ),
        Flag(
            "--pending-deadline",
            "torchyard.pendingDeadline",
            "Give up when a launched attempt does not run after this time.",
            readers.duration,
            shown="TIME",
        ),
        Flag(
            "--termination-grace-period",
            "spec.terminationGracePeriodSeconds",
            "Time between SIGTERM and SIGKILL.",
            readers.seconds,
            shown="TIME",
        ),
        Flag(
            "--auto-deletion-time-after-completion",
            "spec.autoDeletionTimeAfterCompletionSeconds",
            "Delete it this long after its end.",
            readers.seconds,
            shown="TIME",
        ),
        Flag(
            "--trust-exit-code", "torchyard.trustExitCode", "Exit code 0 is success, whatever torchrun reported.", None
        ),
    ),
)
MASTER = Section(
    "Master, where it differs from the workers",
    (
        Flag("--master-command", "masterSpec.command", "Its command."),
        Flag("--master-args", "masterSpec.args", "Its arguments."),
        Flag(
            "--master-environment-variable",
            "masterSpec.environmentVariables[]",
            "Another variable for it: NAME=VALUE.",
            pair("name", "value"),
            shown="NAME=VALUE",
        ),
        Flag(
            "--master-gpu-devices-request",
            "masterSpec.compute.gpuDevicesRequest",
            "Its devices.",
            readers.whole,
            shown="N",
        ),
        Flag(
            "--master-gpu-portion-request",
            "masterSpec.compute.gpuPortionRequest",
            "Its share of a GPU.",
            readers.number,
        ),
        Flag("--master-gpu-portion-limit", "masterSpec.compute.gpuPortionLimit", "Its largest share.", readers.number),
        Flag("--master-cpu-core-request", "masterSpec.compute.cpuCoreRequest", "Its cores.", readers.number),
        Flag("--master-cpu-core-limit", "masterSpec.compute.cpuCoreLimit", "Its cores at most.", readers.number),
        Flag("--master-cpu-memory-request", "masterSpec.compute.cpuMemoryRequest", "Its memory.", readers.size),
        Flag("--master-cpu-memory-limit", "masterSpec.compute.cpuMemoryLimit", "Its memory at most.", readers.size),
        Flag(
            "--master-extended-resource",
            "masterSpec.compute.extendedResources[]",
            "Another resource of it: NAME=QUANTITY.",
            _QUANTITY,
        ),
        Flag("--master-restart-policy", "masterSpec.restartPolicy", "Its restart policy.", _RESTART),
        Flag("--master-no-pvcs", "masterSpec.noPvcs", "It mounts no claims.", None),
    ),
    distributed=True,
)
COMPUTE = Section(
    "Compute",
    (
        Flag(
            "-g --gpu-devices-request",
            "spec.compute.gpuDevicesRequest",
            "Devices of each replica (GPUs; CPU slots where there are none).",
            readers.whole,
            shown="N",
        ),
        Flag("--gpu-request-type", "spec.compute.gpuRequestType", "portion or memory.", one_of("portion", "memory")),
        Flag("--gpu-portion-request", "spec.compute.gpuPortionRequest", "Share of a GPU: 0.5.", readers.number),
        Flag("--gpu-portion-limit", "spec.compute.gpuPortionLimit", "Largest share of a GPU.", readers.number),
        Flag("--gpu-memory-request", "spec.compute.gpuMemoryRequest", "Memory of a GPU: 20G.", readers.size),
        Flag("--gpu-memory-limit", "spec.compute.gpuMemoryLimit", "Most memory of a GPU.", readers.size),
        Flag("--cpu-core-request", "spec.compute.cpuCoreRequest", "Cores.", readers.number),
        Flag("--cpu-core-limit", "spec.compute.cpuCoreLimit", "Cores at most.", readers.number),
        Flag("--cpu-memory-request", "spec.compute.cpuMemoryRequest", "Memory: 16G.", readers.size),
        Flag("--cpu-memory-limit", "spec.compute.cpuMemoryLimit", "Memory at most.", readers.size),
        Flag("--large-shm", "spec.compute.largeShmRequest", "A quarter of the memory as /dev/shm.", None),
        Flag("--extended-resource", "spec.compute.extendedResources[]", "Another resource: NAME=QUANTITY.", _QUANTITY),
    ),
)
STORAGE = Section(
    "Storage",
    (
        Flag("--existing-pvc", "spec.storage.pvc[]", "Mount a claim: claimname=C,path=/P[,ro].", values.EXISTING_PVC),
        Flag(
            "--new-pvc",
            "spec.storage.pvc[]",
            "Make a claim: size=S,path=/P[,claimname=C,storageclass=,accessmode-rwo|rom|rwm,ro,ephemeral].",
            values.NEW_PVC,
        ),
        Flag("--nfs", "spec.storage.nfs[]", "path=,server=,mountpath=[,readwrite].", values.NFS),
        Flag(
            "--host-path", "spec.storage.hostPath[]", "path=,mount=[,mount-propagation=,readwrite].", values.HOST_PATH
        ),
        Flag("--git-sync", "spec.storage.git[]", "repository=,path=[,name=,branch=,rev=,secret=].", values.GIT),
        Flag("--s3", "spec.storage.s3[]", "bucket=,path=[,name=,url=,accesskey=].", values.S3),
        Flag("--configmap-map-volume", "spec.storage.configMapVolume[]", "name=,path=[,subpath=].", values.CONFIG_MAP),
        Flag("--secret-volume", "spec.storage.secretVolume[]", "name=,path=.", values.SECRET),
        Flag(
            "--empty-dir-volume",
            "spec.storage.emptyDirVolume[]",
            "path=[,medium=Memory,size-limit=].",
            values.EMPTY_DIR,
        ),
        Flag("--datavolume", "spec.storage.dataVolume[]", "id=,path=.", compound({"id": "id", "path": "mountPath"})),
    ),
)
PLACEMENT = Section(
    "Placement",
    (
        Flag("--node-pools", "spec.nodePools[]", "Node pool; the first that fits."),
        Flag("--node-type", "spec.nodeType", "Node type."),
        Flag("--toleration", "spec.tolerations[]", "key=,operator=[,value=,effect=,seconds=].", values.TOLERATION),
        Flag(
            "--preferred-pod-topology-key",
            "spec.podAffinity",
            "Replicas near each other, where it can be.",
            lambda key: {"type": "Preferred", "key": key},
        ),
        Flag(
            "--required-pod-topology-key",
            "spec.podAffinity",
            "Replicas near each other, or not at all.",
            lambda key: {"type": "Required", "key": key},
        ),
        Flag(
            "--priority",
            "spec.priorityClass",
            "very-low to very-high.",
            one_of("very-low", "low", "medium-low", "medium", "medium-high", "high", "very-high"),
        ),
        Flag(
            "--preemptibility",
            "spec.preemptibility",
            "preemptible or non-preemptible.",
            one_of("preemptible", "non-preemptible"),
        ),
        Flag("--label", "spec.labels[]", "NAME=VALUE.", pair("name", "value"), shown="NAME=VALUE"),
        Flag("--annotation", "spec.annotations[]", "NAME=VALUE.", pair("name", "value"), shown="NAME=VALUE"),
        Flag("--port", "spec.ports[]", "service-type=NodePort,container=80[,external=8080].", values.PORT),
        Flag("--external-url", "spec.exposedUrls[]", "container=8888[,url=,name=].", values.URL),
    ),
)
SECURITY = Section(
    "Security",
    (
        Flag("--run-as-uid", "spec.security.runAsUid", "User id.", readers.whole, shown="N"),
        Flag("--run-as-gid", "spec.security.runAsGid", "Group id.", readers.whole, shown="N"),
        Flag("--run-as-non-root", "spec.security.runAsNonRoot", "Refuse to run as root.", None),
        Flag("--supplemental-groups", "spec.security.supplementalGroups", "Group ids with commas between them."),
        Flag(
            "--user-group-source",
            "spec.security.uidGidSource",
            "fromTheImage, fromIdpToken or custom.",
            one_of("fromTheImage", "fromIdpToken", "custom"),
        ),
        Flag("--allow-privilege-escalation", "spec.security.allowPrivilegeEscalation", "Allow setuid programs.", None),
        Flag("--capability", "spec.security.capabilities[]", "Linux capability to add."),
        Flag(
            "--seccomp-profile",
            "spec.security.seccompProfileType",
            "RuntimeDefault, Unconfined or Localhost.",
            one_of("RuntimeDefault", "Unconfined", "Localhost"),
        ),
        Flag("--host-ipc", "spec.security.hostIpc", "The node's IPC.", None),
        Flag("--host-network", "spec.security.hostNetwork", "The node's network.", None),
    ),
)
OWN = Section(
    "Torchyard's own",
    (
        Flag(
            "--isolation",
            "torchyard.isolation",
            "How far a local replica is kept from the machine: process, sandbox or container.",
            one_of("process", "sandbox", "container"),
        ),
        Flag("--as-pod", "torchyard.isolation", "A pod's view: the same as --isolation sandbox.", None, "sandbox"),
        Flag(
            "--resume-from",
            "torchyard.resumeFrom",
            "Mount another workload's claim and set TORCHYARD_RESUME_FROM.",
            shown="WORKLOAD[:FILE]",
        ),
        Flag(
            "--notify",
            "torchyard.notify",
            "Command or webhook for when it ends, fails or starts waiting.",
            readers.notify,
            shown="CMD|URL",
        ),
        Flag(
            "--progress",
            "torchyard.progress.pattern",
            "Pattern with (?P<step>) and (?P<total>), (?P<loss>).",
            shown="REGEX",
        ),
        Flag("--progress-total", "torchyard.progress.total", "How many steps there are.", readers.whole, shown="N"),
    ),
)
SECTIONS = (IMAGE_AND_COMMAND, WORKERS, RETRIES, MASTER, COMPUTE, STORAGE, PLACEMENT, SECURITY, OWN)
"""What `submit` takes."""

RUN_FLAGS = frozenset(
    {
        "--image",
        "--working-dir",
        "--environment-variable",
        "--backoff-limit",
        "--max-time",
        "--gpu-devices-request",
        "--large-shm",
        "--workers",
        "--existing-pvc",
        "--isolation",
        "--as-pod",
        "--resume-from",
        "--notify",
        "--progress",
        "--progress-total",
    }
)
"""What `run` takes of them."""


def flags_of_run() -> tuple[Flag, ...]:
    """The flags that `run` shares with `submit`."""
    return tuple(flag for section in SECTIONS for flag in section.flags if RUN_FLAGS.intersection(flag.names.split()))
