"""What the rules refuse and warn of, with the words that people read."""

from typing import Any

import pytest
from tests.render.builders import CHECKPOINTS, submission

from torchyard.domain.finding import Finding, Severity
from torchyard.domain.observation import Capabilities
from torchyard.domain.spec import Submission
from torchyard.policy.admit import admit, rules
from torchyard.policy.rule import Folder, View

HASH = "sha256:" + "a" * 64
CODE = Folder(path="the code folder", exists=True, readable=True, files=frozenset({"./run.sh", "train.py", "src/a.py"}))


def findings(asked: Submission, **facts: Any) -> tuple[Finding, ...]:
    known: dict[str, Any] = {
        "capabilities": Capabilities(sandbox=True, container=True),
        "devices": 4,
        "device_kind": "cpu",
        "claims": ("checkpoints", "data"),
        "folder": None,
    }
    return admit(View(submission=asked, **{**known, **facts}))


ERRORS: list[tuple[str, str, dict[str, Any], str, str]] = [
    (
        "devices-exceed-cluster",
        "distributed",
        {"numWorkers": 1, "compute": {"gpuDevicesRequest": 4, "largeShmRequest": True}},
        "spec.compute.gpuDevicesRequest",
        "asks for 8 devices over 2 replicas, and cluster local has 4 CPU slots",
    ),
    ("command-missing", "training", {"command": None}, "spec.command", "there is no command: say what to run"),
    (
        "command-missing",
        "training",
        {"command": None, "args": "run.sh"},
        "spec.command",
        "there is no command: say what to run (args alone are not a command without an image)",
    ),
    ("command-missing", "training", {"command": " "}, "spec.command", "the command is empty: say what to run"),
    ("command-missing", "training", {"command": "bash 'x"}, "spec.command", "a quote is not closed"),
    (
        "command-missing",
        "distributed",
        {"masterSpec": {"image": None}},
        "masterSpec.command",
        "there is no command: say what to run",
    ),
    (
        "claim-missing",
        "training",
        {"storage": {"pvc": [{**CHECKPOINTS, "claimName": "checkpoint"}]}},
        "spec.storage.pvc[0].claimName",
        "there is no claim 'checkpoint' in project default; did you mean checkpoints?",
    ),
    (
        "claim-unnamed",
        "training",
        {"storage": {"pvc": [{"path": "/x"}]}},
        "spec.storage.pvc[0].claimName",
        "a claim without a name is asked for at /x; claims are made first and named here",
    ),
    (
        "mount-path",
        "training",
        {"storage": {"pvc": [CHECKPOINTS, {**CHECKPOINTS, "claimName": "data", "path": "/checkpoints/"}]}},
        "spec.storage",
        "two volumes are mounted at /checkpoints",
    ),
    (
        "mount-path",
        "training",
        {"storage": {"pvc": [{**CHECKPOINTS, "path": "//usr/"}]}},
        "spec.storage",
        "a mount at //usr/ would hide the system's own",
    ),
    (
        "mount-path",
        "training",
        {"storage": {"pvc": [{**CHECKPOINTS, "path": "/a/../b"}]}},
        "spec.storage",
        "the mount path /a/../b leads upwards (..)",
    ),
    (
        "storage-kind",
        "training",
        {"storage": {"nfs": [{"server": "s", "path": "/p", "mountPath": "/m"}]}},
        "spec.storage.nfs",
        "a local cluster does not mount NFS folders",
    ),
    (
        "storage-kind",
        "training",
        {"storage": {"hostPath": [{"path": "/p", "mountPath": "/m"}]}},
        "spec.storage.hostPath",
        "a local cluster does not mount host paths",
    ),
    (
        "variable-source",
        "training",
        {"environmentVariables": [{"name": "A", "value": "1"}, {"name": "B", "secret": {"name": "s", "key": "k"}}]},
        "spec.environmentVariables[1]",
        "the value of B comes from a secret, which a local cluster does not have",
    ),
    (
        "variable-source",
        "training",
        {"environmentVariables": [{"name": "NODE", "podFieldRef": {"path": "spec.nodeName"}}]},
        "spec.environmentVariables[0]",
        "the value of NODE comes from the pod's spec.nodeName, which a local cluster does not have",
    ),
    (
        "compute-kind",
        "training",
        {"compute": {"gpuDevicesRequest": 1, "gpuPortionRequest": 0.5}},
        "spec.compute.gpuPortionRequest",
        "a local cluster gives whole devices, not 0.5 of one",
    ),
    (
        "compute-kind",
        "training",
        {"compute": {"gpuMemoryRequest": "1Gi"}},
        "spec.compute.gpuMemoryRequest",
        "a local cluster gives whole devices, not a share of their memory",
    ),
    (
        "network",
        "workspace",
        {"ports": [{"container": 8888}, {"container": 80, "serviceType": "NodePort"}]},
        "spec.ports[1]",
        "a local cluster does not expose port 80 elsewhere",
    ),
    (
        "network",
        "workspace",
        {"exposedUrls": [{"container": 8888}]},
        "spec.exposedUrls",
        "a local cluster has no addresses to expose",
    ),
    (
        "framework",
        "distributed",
        {"distributedFramework": "MPI"},
        "spec.distributedFramework",
        "a local cluster does not run MPI workloads",
    ),
    (
        "replicas",
        "training",
        {"numWorkers": 3},
        "spec.numWorkers",
        "a training has one replica, and numWorkers asks for more",
    ),
    ("replicas", "training", {"masterSpec": {"command": "x"}}, "masterSpec", "a training has no master"),
    ("replicas", "training", {"completions": 3}, "spec.completions", "a training runs once, and completions is 3"),
    (
        "replicas",
        "distributed",
        {"numWorkers": 0, "torchyard": {"noMaster": True}},
        "spec.numWorkers",
        "there is no master and no worker: nothing would run",
    ),
    (
        "replicas",
        "distributed",
        {"minReplicas": 4, "maxReplicas": 2},
        "spec.minReplicas",
        "minReplicas (4) is more than maxReplicas (2)",
    ),
    (
        "replicas",
        "distributed",
        {"masterSpec": {"command": "x"}, "torchyard": {"noMaster": True}},
        "masterSpec",
        "masterSpec is given, and noMaster says that there is none",
    ),
    (
        "progress-pattern",
        "training",
        {"torchyard": {"progress": {"pattern": "(?P<step>"}}},
        "torchyard.progress.pattern",
        "the progress pattern is no regular expression: ",
    ),
    (
        "progress-pattern",
        "training",
        {"torchyard": {"progress": {"pattern": r"Epoch (\d+)"}}},
        "torchyard.progress.pattern",
        "the progress pattern has no group named step",
    ),
    (
        "times",
        "training",
        {"torchyard": {"maxTime": "0"}},
        "torchyard.maxTime",
        "maxTime is 0: it would end before it starts",
    ),
    (
        "times",
        "training",
        {"torchyard": {"pendingDeadline": "10ms"}},
        "torchyard.pendingDeadline",
        "pendingDeadline is 10ms: it would end before it starts",
    ),
    (
        "notify",
        "training",
        {"torchyard": {"notify": {"command": " "}}},
        "torchyard.notify",
        "notify names neither a command nor a webhook",
    ),
    (
        "notify",
        "training",
        {"torchyard": {"notify": {"webhook": "http:///x"}}},
        "torchyard.notify.webhook",
        "'http:///x' is no address to call",
    ),
    (
        "notify",
        "training",
        {"torchyard": {"notify": {"webhook": "https://ann:hunter2@example.com/x"}}},
        "torchyard.notify.webhook",
        "the address holds a user or a password (user:password@), which would be kept in clear",
    ),
    (
        "resume-from",
        "training",
        {"torchyard": {"resumeFrom": ":snapshot.pt"}},
        "torchyard.resumeFrom",
        "resumeFrom names no workload",
    ),
]


@pytest.mark.parametrize(("rule", "kind", "changes", "where", "message"), ERRORS)
def test_errors(rule: str, kind: str, changes: dict[str, Any], where: str, message: str) -> None:
    found = [f for f in findings(submission(kind, **changes)) if f.severity is Severity.ERROR]
    assert [(f.rule, f.where) for f in found] == [(rule, where)]
    assert found[0].message.startswith(message)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("training", {}),
        ("training", {"compute": {"gpuDevicesRequest": 4}}),
        ("training", {"image": "a/b:1", "command": None}),
        ("workspace", {"ports": [{"container": 8888, "serviceType": "ClusterIP"}]}),
        ("distributed", {"numWorkers": 0}),
        ("distributed", {"numWorkers": 3, "minReplicas": 2, "maxReplicas": 4, "distributedFramework": "PyTorch"}),
        ("distributed", {"slotsPerWorker": 1, "sshAuthMountPath": "/root/.ssh"}),
        ("training", {"storage": {"pvc": [CHECKPOINTS], "emptyDirVolume": [{"path": "/dev/shm"}, {"path": "/tmp"}]}}),
        ("training", {"storage": {"pvc": [{**CHECKPOINTS, "claimName": "gone", "exclude": True}]}}),
        ("training", {"environmentVariables": [{"name": "POD", "podFieldRef": {"path": "metadata.name"}}]}),
        ("training", {"compute": {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 1}}),
        ("training", {"torchyard": {"notify": {"webhook": "http://127.0.0.1/x?to=a@b"}, "maxTime": "1h"}}),
        ("training", {"torchyard": {"progress": {"total": 100, "pattern": r"Epoch (?P<step>\d+)/(?P<total>\d+).*"}}}),
    ],
)
def test_what_is_well_gives_no_finding(kind: str, changes: dict[str, Any]) -> None:
    assert findings(submission(kind, **changes)) == ()


def test_more_replicas_than_the_cluster_takes() -> None:
    able = Capabilities(replicas=128)
    (found,) = findings(submission("distributed", numWorkers=5000), capabilities=able)
    assert (found.rule, found.where, found.severity) == ("replicas-exceed-cluster", "spec.numWorkers", Severity.ERROR)
    assert found.message == "asks for 5001 replicas, and cluster local takes 128 of a workload at most"
    assert not findings(submission("distributed", numWorkers=127), capabilities=able)
    assert not findings(submission("distributed", numWorkers=5000))


def test_the_setting_for_more_slots_is_named_where_devices_are_cpu_slots() -> None:
    asked = submission(compute={"gpuDevicesRequest": 5})
    assert "TORCHYARD_CPU_SLOTS=5" in (findings(asked)[0].fix or "")
    on_gpus = findings(asked, device_kind="NVIDIA H200", devices=1)[0]
    assert on_gpus.message == "asks for 5 devices, and cluster local has 1 device"
    assert "TORCHYARD_CPU_SLOTS" not in (on_gpus.fix or "")


@pytest.mark.parametrize(
    ("changes", "folder", "message"),
    [
        (
            {"workingDir": "/gone"},
            Folder(path="/gone", exists=False, readable=False),
            "the working folder /gone is not on this machine",
        ),
        (
            {"workingDir": "/root/x"},
            Folder(path="/root/x", exists=True, readable=False),
            "the working folder /root/x cannot be read by the server's user",
        ),
        (
            {"command": "bash rum.sh"},
            CODE,
            "there is no rum.sh in the code folder; did you mean run.sh?",
        ),
        ({"command": "torchrun --standalone src/b.py"}, CODE, "there is no src/b.py in the code folder"),
        (
            {"command": "python b.py", "workingDir": "src", "torchyard": {"code": HASH}},
            CODE,
            "there is no src/b.py in the code folder; did you mean src/a.py?",
        ),
        (
            {"command": "python a.py", "workingDir": "lib", "torchyard": {"code": HASH}},
            CODE,
            "there is no folder lib in the code folder",
        ),
        (
            {"workingDir": "./lib"},
            None,
            "the working folder lib is relative, and there is no code that it could be in",
        ),
        (
            {"workingDir": "lib", "image": "a/b:1"},
            None,
            "the working folder lib is relative, and there is no code that it could be in",
        ),
    ],
)
def test_folders_and_scripts(changes: dict[str, Any], folder: Folder | None, message: str) -> None:
    found = findings(submission(**changes), folder=folder)
    assert [f.severity for f in found] == [Severity.ERROR]
    assert found[0].message.startswith(message)


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        (
            {"workingDir": "/gone", "torchyard": {"isolation": "process"}},
            Folder(path="/gone", exists=False, readable=False),
        ),
        (
            {"workingDir": "/checkpoints/code", "storage": {"pvc": [CHECKPOINTS]}},
            Folder(path="/checkpoints/code", exists=False, readable=False),
        ),
        ({"workingDir": "/runai", "image": "a/b:1"}, Folder(path="/runai", exists=False, readable=False)),
        ({"workingDir": "/runai", "torchyard": {"code": HASH}}, Folder(path="/runai", exists=False, readable=False)),
        ({"workingDir": "/here"}, Folder(path="/here", exists=True, readable=True)),
        ({"command": "bash ./run.sh"}, CODE),
        ({"command": "python a.py", "workingDir": "src", "torchyard": {"code": HASH}}, CODE),
        ({"command": "true", "workingDir": "src/../src/", "torchyard": {"code": HASH}}, CODE),
        ({"command": "true", "workingDir": "."}, None),
        ({"command": "python ../elsewhere.py"}, CODE),
        ({"command": "python -m anything"}, CODE),
    ],
)
def test_folders_and_scripts_that_are_well(changes: dict[str, Any], folder: Folder | None) -> None:
    assert findings(submission(**changes), folder=folder) == ()


def test_a_workload_to_resume_from_must_be_there() -> None:
    asked = submission(torchyard={"resumeFrom": "old:snapshot.pt"})
    assert findings(asked) == ()
    assert findings(asked, resume_known=False)[0].message.startswith("there is no workload 'old' in project default")


def test_a_checkpoint_of_somebody_else_is_named_beside_ones_own() -> None:
    asked = submission(torchyard={"resumeFrom": "old"})
    (finding,) = findings(asked, resume_own=("snapshot-old.pt", "a.pt"))
    assert finding.severity is Severity.WARNING
    assert (finding.fix or "").endswith("old:snapshot-old.pt, old:a.pt")


@pytest.mark.parametrize(
    ("image", "good"),
    [
        ("pytorch", True),
        ("pytorch/pytorch:2.9.0-cuda12", True),
        ("Registry.example:5000/team/a_b--c.d:V1_x", True),
        ("localhost/x@sha256:" + "0" * 64, True),
        ("[::1]:5000/x", True),
        ("bad image!!", False),
        ("PyTorch", False),
        ("x:", False),
        ("/x", False),
        ("-x", False),
        ("x@sha256:0", False),
    ],
)
def test_names_of_images(image: str, good: bool) -> None:
    assert (findings(submission(image=image)) == ()) == good


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<step>(\d+)+)$",
        r"(?:(?P<step>\d)*)*x",
        r"(?:a|a)*(?P<step>\d)",
        r"((?P<step>\d+)|x){1,}",
        r".*.*(?P<step>\d+).*x",
        r"(?P<step>a{1,}){2,}",
    ],
)
def test_patterns_that_can_take_for_ever_are_refused(pattern: str) -> None:
    found = findings(submission(torchyard={"progress": {"pattern": pattern}}))
    assert "can take for ever" in found[0].message


@pytest.mark.parametrize(
    "pattern",
    [
        r"\[(?P<step>\d+)/(?P<total>\d+)\] .*loss[=:] *(?P<loss>[\d.e+-]+)",
        r"(?:step|iter) (?P<step>\d+)(?:/(?P<total>\d+))?",
        r"[(*+] (?P<step>\d+) \(a\)+",
    ],
)
def test_honest_patterns_are_taken(pattern: str) -> None:
    assert findings(submission(torchyard={"progress": {"pattern": pattern}})) == ()


def test_several_ranks_in_a_pods_shared_memory_are_a_warning() -> None:
    sandbox = {"isolation": "sandbox"}
    found = findings(submission(compute={"gpuDevicesRequest": 2}, torchyard=sandbox))
    assert [(f.rule, f.severity) for f in found] == [("shared-memory", Severity.WARNING)]
    assert findings(submission(compute={"gpuDevicesRequest": 2, "largeShmRequest": True}, torchyard=sandbox)) == ()
    assert findings(submission(compute={"gpuDevicesRequest": 1}, torchyard=sandbox)) == ()


def test_more_than_the_quota_of_the_project_is_a_warning() -> None:
    asked = submission("distributed", numWorkers=1, compute={"gpuDevicesRequest": 1, "largeShmRequest": True})
    assert findings(asked) == findings(asked, quota=2) == ()
    (found,) = findings(asked, quota=1)
    assert (found.rule, found.severity) == ("devices-exceed-quota", Severity.WARNING)
    assert "asks for 2 devices, and the quota of project default is 1" in found.message
    assert "--quota 2" in (found.fix or "")


def test_fields_without_effect_are_warnings() -> None:
    asked = submission(
        nodePools=["a"], preemptibility="preemptible", probes={"readiness": {}}, compute={"cpuMemoryLimit": "1Gi"}
    )
    found = findings(asked)
    assert {f.severity for f in found} == {Severity.WARNING}
    assert [f.where for f in found] == [
        "spec.nodePools",
        "spec.preemptibility",
        "spec.probes",
        "spec.compute.cpuMemoryLimit",
    ]
    assert found[0].message == "nodePools has no meaning on a local cluster"


def test_errors_come_first_and_all_at_once() -> None:
    asked = submission("distributed", command=None, distributedFramework="JAX", nodePools=["a"])
    severities = [f.severity for f in findings(asked)]
    assert severities == [Severity.ERROR, Severity.ERROR, Severity.WARNING]


def test_every_rule_is_known_by_its_file() -> None:
    names = [rule.id for rule in rules()]
    assert len(set(names)) == len(names)
    tried = {rule for rule, *_ in ERRORS} | {"working-folder", "script-missing", "shared-memory", "no-meaning"}
    tried |= {"replicas-exceed-cluster", "image-name", "resume-writer", "devices-exceed-quota"}
    assert set(names) == tried
