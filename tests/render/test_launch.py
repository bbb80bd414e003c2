"""Launch plans: the world they describe, what a replica finds in its environment, and what is said about them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.builders import CHECKPOINTS, submission

from torchyard.domain.errors import Invalid
from torchyard.domain.launch import LaunchPlan, ReplicaPlan, ResumeSource
from torchyard.domain.observation import Capabilities
from torchyard.domain.spec import Submission
from torchyard.render.isolation import pick
from torchyard.render.launch import plan, world
from torchyard.render.volumes import relocate

ID = "0b5f3c1e-7f5d-4c39-9d0c-111111111111"
HASH = "sha256:" + "a" * 64
ABLE = Capabilities(sandbox=True, container=True)


def planned(asked: Submission, /, attempt: int = 1, folder_exists: bool = True, **more: Any) -> LaunchPlan:
    choice = pick(asked, ABLE, folder_exists=folder_exists)
    return plan(asked, workload_id=ID, attempt=attempt, choice=choice, **more)


def first(asked: Submission, /, **more: Any) -> ReplicaPlan:
    return planned(asked, **more).replicas[0]


def variable(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


@st.composite
def submissions(draw: st.DrawFn) -> Submission:
    devices = st.none() | st.integers(0, 8)
    compute = {"gpuDevicesRequest": draw(devices)}
    if not draw(st.booleans()):
        return submission(compute=compute)
    changes: dict[str, Any] = {"compute": compute, "numWorkers": draw(st.none() | st.integers(1, 6))}
    if draw(st.booleans()):
        changes["torchyard"] = {"noMaster": True}
    elif draw(st.booleans()):
        changes["masterSpec"] = {"command": "torchrun x.py", "compute": {"gpuDevicesRequest": draw(devices)}}
    return submission("distributed", **changes)


@given(submissions(), st.integers(1, 9))
def test_every_replica_sees_the_same_world(asked: Submission, attempt: int) -> None:
    made = planned(asked, attempt=attempt)
    replicas = made.replicas
    assert [r.name for r in replicas] == list(asked.replicas)
    assert [r.node_rank for r in replicas] == list(range(len(replicas)))
    assert made.key == f"{ID}-{attempt}"
    assert all(r.nproc == max(1, r.devices) for r in replicas)
    assert {r.env["PET_NNODES"] for r in replicas} == {str(len(replicas))}
    assert [r.env["PET_NODE_RANK"] for r in replicas] == [str(r.node_rank) for r in replicas]
    assert [r.env["PET_NPROC_PER_NODE"] for r in replicas] == [str(r.nproc) for r in replicas]
    assert {r.env["PET_RDZV_ID"] for r in replicas} == {f"ddp-{attempt}"}
    if len(replicas) > 1:
        assert {r.env["WORLD_SIZE"] for r in replicas} == {str(made.ranks)}
        assert [r.env["RANK"] for r in replicas] == [str(r.node_rank) for r in replicas]
    assert world(asked).endswith(f"= {made.ranks} rank{'s' if made.ranks > 1 else ''}")


@given(submissions())
def test_addresses_ports_and_device_numbers_are_left_to_the_engine(asked: Submission) -> None:
    for replica in planned(asked).replicas:
        assert not [n for n in replica.env if "PORT" in n or "ADDR" in n or "CUDA" in n or "IFNAME" in n]


@given(submissions())
def test_the_same_submission_gives_the_same_plan(asked: Submission) -> None:
    assert planned(asked) == planned(asked)


def test_attempts_never_share_a_rendezvous() -> None:
    one, two = (first(submission(), attempt=number) for number in (1, 2))
    assert one.env["PET_RDZV_ID"] != two.env["PET_RDZV_ID"]
    assert one.env["TORCHYARD_ATTEMPT"] == f"{ID}-1"
    assert two.env["TORCHYARD_ATTEMPT_NUMBER"] == "2"


@pytest.mark.parametrize(
    ("kind", "changes", "sentence"),
    [
        ("training", {}, "1 replica x no device = 1 rank"),
        ("training", {"compute": {"gpuDevicesRequest": 4}}, "1 replica x 4 devices = 4 ranks"),
        ("distributed", {"numWorkers": 1, "compute": {"gpuDevicesRequest": 1}}, "2 replicas x 1 device = 2 ranks"),
        ("distributed", {"numWorkers": 1, "compute": {"gpuDevicesRequest": 4}}, "2 replicas x 4 devices = 8 ranks"),
        ("distributed", {"numWorkers": 2}, "3 replicas x no device = 3 ranks"),
        (
            "distributed",
            {"numWorkers": 2, "compute": {"gpuDevicesRequest": 4}, "masterSpec": {"command": "x"}},
            "1 replica x no device + 2 replicas x 4 devices = 9 ranks",
        ),
    ],
)
def test_world(kind: str, changes: dict[str, Any], sentence: str) -> None:
    assert world(submission(kind, **changes)) == sentence


@pytest.mark.parametrize("command", ["torchrun train.py", "python -m torch.distributed.run train.py"])
def test_ranks_write_to_files_where_the_command_is_torchrun(command: str) -> None:
    env = first(submission(command=command)).env
    assert env["PET_REDIRECTS"] == "3"
    assert "PET_TEE" not in env


def test_ranks_stay_on_stdout_where_torchrun_is_in_a_script() -> None:
    env = first(submission()).env
    assert env["PET_TEE"] == "3"
    assert env["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] == "\x1e[${rank}] "
    assert "PET_REDIRECTS" not in env


def test_who_the_replica_is() -> None:
    env = planned(submission("distributed", compute={"gpuDevicesRequest": 2})).replicas[1].env
    assert {name: value for name, value in env.items() if name.startswith(("TORCHYARD", "RUNAI"))} == {
        "TORCHYARD_WORKLOAD": "ddp",
        "TORCHYARD_WORKLOAD_ID": ID,
        "TORCHYARD_PROJECT": "default",
        "TORCHYARD_ATTEMPT": f"{ID}-1",
        "TORCHYARD_ATTEMPT_NUMBER": "1",
        "TORCHYARD_REPLICA": "worker-0",
        "RUNAI_PROJECT": "default",
        "RUNAI_JOB_NAME": "ddp",
        "RUNAI_JOB_UUID": ID,
        "RUNAI_NUM_OF_GPUS": "2",
    }


def test_the_specs_variables_win_but_for_who_it_is() -> None:
    mine = [
        variable("PYTHONUNBUFFERED", "0"),
        variable("PET_NNODES", "7"),
        variable("TORCHYARD_ATTEMPT", "forged"),
        {"name": "EMPTY"},
        {**variable("GONE", "x"), "exclude": True},
        {"name": "POD", "podFieldRef": {"path": "metadata.name"}},
    ]
    made = planned(submission(environmentVariables=mine))
    env = made.replicas[0].env
    assert (env["PYTHONUNBUFFERED"], env["PET_NNODES"], env["EMPTY"], env["POD"]) == ("0", "7", "", "ddp-worker-0")
    assert env["TORCHYARD_ATTEMPT"] == f"{ID}-1"
    assert "GONE" not in env
    assert "the variable TORCHYARD_ATTEMPT is torchyard's own; the spec's value is not used" in made.notes


def test_a_sealed_value_is_not_in_the_plan() -> None:
    assert "HF_TOKEN" not in first(submission(environmentVariables=[variable("HF_TOKEN", "(sealed)")])).env


def test_the_grace_reaches_torchrun() -> None:
    made = planned(submission(terminationGracePeriodSeconds=90))
    assert (made.grace, made.replicas[0].env["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"]) == (90.0, "90")
    assert planned(submission()).grace == 30.0


def test_a_master_has_its_own_spec() -> None:
    asked = submission(
        "distributed",
        compute={"gpuDevicesRequest": 2},
        masterSpec={"command": "python lead.py", "compute": {"gpuDevicesRequest": 1}},
    )
    master, worker = planned(asked).replicas
    assert (master.argv, master.nproc, master.devices) == (("python", "lead.py"), 1, 1)
    assert (worker.argv, worker.nproc, worker.devices) == (("bash", "run.sh"), 2, 2)
    assert {master.env["WORLD_SIZE"], worker.env["WORLD_SIZE"]} == {"3"}


@pytest.mark.parametrize(
    "changes", [{"command": None}, {"command": "  "}, {"command": "''"}, {"command": None, "args": "x"}]
)
def test_without_a_command_there_is_no_plan(changes: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"^spec\.command: say what to run$"):
        planned(submission(**changes))


def test_an_image_may_know_what_to_run() -> None:
    for changes, argv, by_image in (
        ({"command": None}, (), True),
        ({"command": None, "args": "bash run.sh"}, ("bash", "run.sh"), True),
        ({"args": "--fast"}, ("bash", "run.sh", "--fast"), False),
    ):
        made = first(submission(image="a/b:1", **changes))
        assert (made.argv, made.by_image) == (argv, by_image)


def test_when_an_image_is_pulled() -> None:
    assert first(submission(image="a/b:1", imagePullPolicy="Always")).pull == "Always"
    assert first(submission(image="a/b:1", imagePullPolicy="Always", torchyard={"isolation": "process"})).pull is None


def test_no_replica_is_no_plan() -> None:
    with pytest.raises(Invalid, match="nothing would run"):
        planned(submission("distributed", numWorkers=0, torchyard={"noMaster": True}))


@pytest.mark.parametrize(
    ("changes", "folder_exists", "workdir"),
    [
        ({}, False, None),
        ({"workingDir": "."}, False, None),
        ({"workingDir": "/home/me/"}, True, "/home/me"),
        ({"workingDir": "src/../lib"}, False, "lib"),
        ({"workingDir": "/runai"}, False, "/runai"),
        ({"workingDir": "/runai", "torchyard": {"isolation": "process"}}, False, None),
        ({"workingDir": "/home/me", "torchyard": {"code": HASH}}, True, None),
        ({"workingDir": "/runai", "torchyard": {"code": HASH}}, False, "/runai"),
        ({"workingDir": "/home/me", "torchyard": {"isolation": "sandbox"}}, True, "/home/me"),
    ],
)
def test_working_folder(changes: dict[str, Any], folder_exists: bool, workdir: str | None) -> None:
    assert first(submission(**changes), folder_exists=folder_exists).workdir == workdir


def test_the_working_folder_stays_inside_the_code() -> None:
    with pytest.raises(Invalid, match="leads out of the code's folder"):
        planned(submission(workingDir="../other"))


@pytest.mark.parametrize(
    ("changes", "size", "source"),
    [
        ({}, None, "the machine's own /dev/shm (isolation process)"),
        ({"torchyard": {"isolation": "sandbox"}}, 64 * 2**20, "64.0 MiB (a pod's default"),
        (
            {"compute": {"largeShmRequest": True, "cpuMemoryLimit": "8Gi"}, "torchyard": {"isolation": "sandbox"}},
            2 * 2**30,
            "2.0 GiB (largeShmRequest: a quarter of the memory)",
        ),
        (
            {"compute": {"largeShmRequest": True}, "torchyard": {"isolation": "sandbox"}},
            None,
            "there is no memory limit",
        ),
        (
            {
                "compute": {"largeShmRequest": True, "cpuMemoryLimit": "8Gi"},
                "storage": {"emptyDirVolume": [{"path": "/dev/shm", "medium": "Memory", "sizeLimit": "3Gi"}]},
            },
            3 * 2**30,
            "3.0 GiB (the emptyDirVolume at /dev/shm)",
        ),
    ],
)
def test_shared_memory(changes: dict[str, Any], size: int | None, source: str) -> None:
    made = planned(submission(**changes))
    assert made.replicas[0].shm == size
    assert made.replicas[0].scratch == ()
    assert [note for note in made.notes if note.startswith("shared memory: ") and source in note]


def test_large_shared_memory_is_a_quarter_of_the_nodes_share() -> None:
    asked = submission(compute={"largeShmRequest": True}, torchyard={"isolation": "sandbox"})
    assert first(asked, node_share=16 * 2**30).shm == 4 * 2**30


def test_claims_and_scratch_are_mounted_and_named() -> None:
    storage = {
        "pvc": [
            {"claimName": "my-data", "path": "/data/train/", "readOnly": True},
            CHECKPOINTS,
            {**CHECKPOINTS, "claimName": "not-this", "exclude": True},
        ],
        "emptyDirVolume": [{"path": "/scratch", "medium": "Memory", "sizeLimit": "1Gi"}],
    }
    replica = first(submission(storage=storage))
    assert [(m.claim, m.path, m.read_only) for m in replica.mounts] == [
        ("checkpoints", "/checkpoints", False),
        ("my-data", "/data/train", True),
    ]
    assert replica.env["TORCHYARD_VOLUME_MY_DATA"] == "/data/train"
    assert replica.env["TORCHYARD_VOLUME_CHECKPOINTS"] == "/checkpoints"
    assert [(s.path, s.memory, s.size) for s in replica.scratch] == [("/scratch", True, 2**30)]


def test_process_isolation_says_what_it_does_not_honour() -> None:
    asked = submission(
        image="a/b:1",
        workingDir="/runai",
        storage={"pvc": [CHECKPOINTS], "emptyDirVolume": [{"path": "/scratch"}]},
        torchyard={"isolation": "process"},
    )
    made = planned(asked, folder_exists=False)
    assert made.notes == (
        "isolation process: asked for",
        "isolation process: the image a/b:1 is not used, this machine's files are",
        "isolation process: checkpoints is not mounted at /checkpoints; $TORCHYARD_VOLUME_CHECKPOINTS says where it is",
        "isolation process: there is no empty volume at /scratch",
        "isolation process: /runai is not on this machine; the command starts in an empty folder",
        "shared memory: the machine's own /dev/shm (isolation process)",
    )
    assert (made.replicas[0].image, made.replicas[0].scratch) == (None, ())


def test_elastic_sizes_are_accepted_and_said_to_be_fixed() -> None:
    notes = planned(submission("distributed", numWorkers=3, minReplicas=2, maxReplicas=4)).notes
    assert "minReplicas and maxReplicas: every attempt has the full size of 4 replicas" in notes


SOURCE = ResumeSource(claim="checkpoints", path="run1/snapshot.pt", mount_path="/checkpoints")


@pytest.mark.parametrize(
    ("pvc", "mounts", "path"),
    [
        ([], [("checkpoints", "/checkpoints")], "/checkpoints/run1/snapshot.pt"),
        ([{**CHECKPOINTS, "path": "/old"}], [("checkpoints", "/old")], "/old/run1/snapshot.pt"),
        (
            [{**CHECKPOINTS, "claimName": "new"}],
            [("new", "/checkpoints"), ("checkpoints", "/resume-from/checkpoints")],
            "/resume-from/checkpoints/run1/snapshot.pt",
        ),
    ],
)
def test_resume_mounts_the_claim_once(pvc: list[dict[str, Any]], mounts: list[tuple[str, str]], path: str) -> None:
    replica = first(submission(storage={"pvc": pvc}), resume=SOURCE)
    assert [(m.claim, m.path) for m in replica.mounts] == mounts
    assert replica.env["TORCHYARD_RESUME_FROM"] == path


def test_where_nothing_is_mounted_paths_are_relocated() -> None:
    replica = first(submission(torchyard={"isolation": "process"}), resume=SOURCE)
    env = relocate(replica.env, replica.mounts, {"checkpoints": "/data/claims/checkpoints"})
    assert env["TORCHYARD_VOLUME_CHECKPOINTS"] == "/data/claims/checkpoints"
    assert env["TORCHYARD_RESUME_FROM"] == "/data/claims/checkpoints/run1/snapshot.pt"
