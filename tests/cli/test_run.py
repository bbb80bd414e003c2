"""What a `run` line means: torchrun's words, whose arguments are whose, and refusals before anything is created."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.conftest import Ran

from torchyard.cli.commands import run
from torchyard.cli.session import Session
from torchyard.cli.submission import Submission
from torchyard.cli.torchrun import Launcher, size_of
from torchyard.domain.errors import Invalid

Cli = Callable[..., Ran]
pytestmark = pytest.mark.usefixtures("untouched")
CPU_NODE = {"gpuInfo": {"gpuCount": 0}, "devices": [{}] * 4, "cpuCores": 2}
GPU_NODE = {"gpuInfo": {"gpuCount": 8}, "devices": [{}] * 8, "cpuCores": 64}


def submission(*words: str) -> Submission:
    """What this line submits."""
    with run.command.make_context("run", list(words)) as context:
        return run.submission_of(**{name: value for name, value in context.params.items() if name != "detach"})


def spec(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = submission(*words).body["spec"]
    return found


@pytest.fixture(autouse=True)
def folder(here: Path) -> Path:
    """A folder with a script."""
    (here / "train.py").write_text("")
    return here


def test_a_torchrun_line_with_one_word_changed() -> None:
    found = submission("--nproc-per-node", "2", "train.py", "--epochs", "3")
    assert found.kind == "training"
    assert found.name is None
    assert found.body["spec"] == {
        "command": "torchrun --standalone --nproc-per-node 2 train.py --epochs 3",
        "backoffLimit": 0,
        "compute": {"gpuDevicesRequest": 2},
    }


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["train.py"], "torchrun --standalone --nproc-per-node 1 train.py"),
        (["--standalone", "--nproc_per_node=3", "train.py"], "torchrun --standalone --nproc-per-node 3 train.py"),
        (["-g", "2", "train.py"], "torchrun --standalone --nproc-per-node 2 train.py"),
        (["-m", "pkg.main", "-x"], "torchrun --standalone --nproc-per-node 1 --module pkg.main -x"),
        (["--no_python", "bash", "-c", "a b"], "torchrun --standalone --nproc-per-node 1 --no-python bash -c 'a b'"),
        (
            ["--monitor_interval", "0.5", "--virtual-local-rank", "train.py"],
            "torchrun --standalone --nproc-per-node 1 --monitor-interval 0.5 --virtual-local-rank train.py",
        ),
        (["--", "bash", "-c", "echo $X"], "bash -c 'echo $X'"),
        (["--", "python", "train.py", "--", "-x"], "python train.py -- -x"),
    ],
)
def test_commands(words: list[str], command: str) -> None:
    assert spec(*words)["command"] == command


def test_all_after_the_script_is_the_scripts() -> None:
    words = ["train.py", "--name", "x", "-d", "--master-port", "1", "--help", "--", "-g", "4"]
    found = submission(*words)
    assert shlex.split(found.body["spec"]["command"])[4:] == words
    assert found.name is None


def test_no_device_asked_means_one_rank_and_a_command_asks_for_none() -> None:
    assert spec("train.py")["compute"] == {"gpuDevicesRequest": 1}
    assert "compute" not in spec("--", "bash")
    assert spec("--nproc-per-node", "2", "--", "bash")["compute"] == {"gpuDevicesRequest": 2}


def test_devices_can_differ_from_ranks() -> None:
    found = spec("--nproc-per-node", "4", "-g", "1", "train.py")
    assert found["compute"] == {"gpuDevicesRequest": 1}
    assert "--nproc-per-node 4" in found["command"]


def test_several_nodes_are_a_distributed_training() -> None:
    found = submission("--nnodes", "3", "--nproc-per-node", "2", "train.py")
    assert found.kind == "distributed"
    assert found.body["spec"]["numWorkers"] == 2
    assert found.body["spec"]["command"] == "torchrun --nproc-per-node 2 train.py"
    assert found.body["masterSpecSameAsWorker"] is True
    assert submission("--workers", "2", "train.py").body["spec"]["numWorkers"] == 2
    assert submission("--nnodes", "1:1", "train.py").kind == "training"


@pytest.mark.parametrize(
    ("words", "limit"),
    [([], 0), (["--max-restarts", "3"], 3), (["--max_restarts=2"], 2), (["--backoff-limit", "4"], 4)],
)
def test_restarts(words: list[str], limit: int) -> None:
    assert spec(*words, "train.py")["backoffLimit"] == limit


def test_own_flags() -> None:
    found = submission(
        "--name", "exp1", "-p", "vision", "-e", "A=1", "--environment-variable", "B=x=y", "--as-pod",
        "--max-time", "2h", "--notify", "https://hook", "--progress", "(?P<step>x)", "--progress-total", "9",
        "--existing-pvc", "claimname=c,path=/c", "--resume-from", "old:a.pt", "--large-shm", "train.py",
    )  # fmt: skip
    assert found.name == "exp1"
    assert found.session.project == "vision"
    assert found.body["spec"]["environmentVariables"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "x=y"}]
    assert found.body["spec"]["storage"] == {"pvc": [{"existingPvc": True, "claimName": "c", "path": "/c"}]}
    assert found.body["spec"]["compute"]["largeShmRequest"] is True
    assert found.body["torchyard"] == {
        "isolation": "sandbox",
        "maxTime": "2h",
        "notify": {"webhook": "https://hook"},
        "progress": {"pattern": "(?P<step>x)", "total": 9},
        "resumeFrom": "old:a.pt",
    }


@pytest.mark.parametrize(
    "flag",
    ["--rdzv-backend", "--rdzv_endpoint", "--rdzv-id", "--rdzv-conf", "--master-addr", "--master_port", "--node-rank"],
)
def test_rendezvous_is_torchyards(flag: str, cli: Cli) -> None:
    for words in ([flag, "x"], [f"{flag}=x"]):
        ran = cli("run", *words, "train.py")
        assert ran.code == 125
        assert f"{flag.replace('_', '-')}: torchyard sets this" in ran.err


def test_log_flags_are_left_out_with_a_note(capfd: pytest.CaptureFixture[str]) -> None:
    assert spec("-t", "3", "--log-dir", "x", "train.py")["command"].endswith("--nproc-per-node 1 train.py")
    assert "--log-dir is left out" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is nothing to run"),
        (["--"], "there is nothing to run"),
        (["-d"], "there is nothing to run"),
        (["trian.py"], "there is no script trian.py\n  did you mean train.py?"),
        (["lib/train.py"], "there is no script lib/train.py"),
        (["."], ". is a folder"),
        (["--", "no-such-command"], "there is no command 'no-such-command'"),
        (["--", "train.py"], "leave out the --: torchyard run train.py"),
        (["--nproc-per-node", "x", "train.py"], "--nproc-per-node is 'x'"),
        (["--nproc-per-node", "0", "train.py"], "--nproc-per-node is '0'"),
        (["--nnodes", "1:4", "train.py"], "--nnodes is '1:4'"),
        (["--nnodes", "2", "--workers", "3", "train.py"], "disagree"),
        (["-g", "many", "train.py"], "'many' is not a whole number"),
        (["--max-time", "soon", "train.py"], "is not a duration"),
        (["--isolation", "jail", "train.py"], "is none of process, sandbox, container"),
        (["--existing-pvc", "claim=c,path=/c", "train.py"], "did you mean claimname?"),
        (["-e", "A", "train.py"], "is not NAME=VALUE"),
        (["no.yaml"], "no.yaml cannot be read: No such file or directory"),
    ],
)
def test_refusals_create_nothing(words: list[str], said: str, cli: Cli) -> None:
    ran = cli("run", *words)
    assert ran.code == 125
    assert said in ran.err
    assert ran.out == ""


def test_without_torchrun_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    with pytest.raises(Invalid, match="there is no torchrun on your PATH"):
        submission("train.py")
    # A command may bring its own.
    (folder / "run.sh").write_text("")
    assert submission("--", "./run.sh").environment["PATH"] == "/nowhere"


def test_torchrun_beside_python_is_put_on_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "torchrun").write_text("")
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))
    monkeypatch.setenv("PATH", "/usr/bin")
    assert submission("train.py").environment["PATH"] == f"{folder / 'bin'}{os.pathsep}/usr/bin"
    assert submission("--", "sh").environment["PATH"] == f"/usr/bin{os.pathsep}{folder / 'bin'}"


def test_environment_travels_whole_and_never_in_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "s3cret")
    monkeypatch.setenv("ODD", "\udcff")
    found = submission("train.py")
    assert found.environment["HF_TOKEN"] == "s3cret"
    assert "ODD" not in found.environment
    assert "s3cret" not in json.dumps(found.body)


def test_script_in_an_image_is_not_looked_for_here() -> None:
    assert "nothere.py" in spec("-i", "pytorch", "nothere.py")["command"]


def test_spec_file_and_flags_after_it(folder: Path) -> None:
    (folder / "s.yaml").write_text(
        "kind: training\nname: a\nproject: vision\nspec: {command: x, compute: {gpuDevicesRequest: 1}}\n"
        "torchyard: {code: ., maxTime: 1h}\n"
    )
    found = submission("s.yaml", "--name", "b", "-g", "2", "-e", "A=1")
    assert (found.kind, found.name, found.session.project) == ("training", "b", "vision")
    assert found.body["spec"] == {
        "command": "x",
        "compute": {"gpuDevicesRequest": 2},
        "environmentVariables": [{"name": "A", "value": "1"}],
        "backoffLimit": 0,
    }
    assert found.body["torchyard"] == {"maxTime": "1h"}
    assert found.code == Path()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: trainin\nspec: {command: x}", "did you mean training?"),
        ("kind: training\nspec: {comand: x}", "did you mean command?"),
        ("kind: training\nspc: {}", "spc"),
        ("a: [", "line"),
        ("", "is empty"),
        ("apiVersion: v1\nkind: Pod", "Kubernetes manifest"),
    ],
)
def test_wrong_spec_files(text: str, said: str, cli: Cli, folder: Path) -> None:
    (folder / "s.yaml").write_text(text)
    ran = cli("run", "s.yaml")
    assert ran.code == 125
    assert said in ran.err
    assert cli("workload", "submit", "-f", "s.yaml").code == 2


def test_after_a_spec_file_all_is_ours(cli: Cli, folder: Path) -> None:
    (folder / "s.json").write_text('{"kind": "training", "spec": {"command": "x"}}')
    assert "--epochs" in cli("run", "s.json", "--epochs", "3").err
    assert "not an option" in cli("run", "s.json", "more").err
    assert "the spec file says it" in cli("run", "s.json", "--nproc-per-node", "2").err


@pytest.mark.parametrize(
    ("nproc", "asked", "node", "size"),
    [
        ("auto", None, CPU_NODE, (4, 4)),
        ("auto", None, GPU_NODE, (8, 8)),
        ("gpu", None, GPU_NODE, (8, 8)),
        ("cpu", None, CPU_NODE, (4, 4)),
        ("cpu", None, GPU_NODE, (64, 0)),
        ("cpu", 1, GPU_NODE, (64, 1)),
        (None, 2, CPU_NODE, (2, 2)),
        (None, 0, GPU_NODE, (1, 0)),
        ("3", None, CPU_NODE, (3, 3)),
    ],
)
def test_size(nproc: str | None, asked: int | None, node: dict[str, Any], size: tuple[int, int]) -> None:
    found = size_of(Launcher(nproc=nproc), asked, 1, [node])
    assert (found.nproc, found.devices) == size


def test_gpu_where_there_is_none() -> None:
    with pytest.raises(Invalid, match="no GPU"):
        size_of(Launcher(nproc="gpu"), None, 1, [CPU_NODE])


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), max_size=5))
def test_arguments_arrive_as_they_were(arguments: list[str]) -> None:
    assert shlex.split(spec("train.py", *arguments)["command"])[4:] == ["train.py", *arguments]


def test_session_asks_nothing_before_it_must() -> None:
    assert "server" not in vars(Session())
