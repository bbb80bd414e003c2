"""Every flag of submit fills a field that the domain knows, and says so when it cannot."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Ran

from torchyard.cli import readers
from torchyard.cli.body import collect, options, with_master
from torchyard.cli.commands import training
from torchyard.cli.flags import RUN_FLAGS, SECTIONS, Flag, flags_of_run
from torchyard.domain.spec import Submission
from torchyard.domain.submission import parse_submission

Cli = Callable[..., Ran]
FLAGS = {flag.names.split()[-1]: flag for section in SECTIONS for flag in section.flags}
VALUES = {
    "--image-pull-policy": "always",
    "--image-pull-my-credentials": "type=dockerRegistry,name=hub",
    "--environment": "A=1",
    "--env-secret": "A=secret,key=k",
    "--env-pod-field-ref": "A=metadata.name",
    "--clean-pod-policy": "running",
    "--restart-policy": "never",
    "--master-restart-policy": "OnFailure",
    "--max-time": "2h",
    "--pending-deadline": "90s",
    "--termination-grace-period": "1m30s",
    "--auto-deletion-time-after-completion": "1d",
    "--master-environment-variable": "B=2",
    "--master-extended-resource": "rdma/hca=1",
    "--extended-resource": "rdma/hca=1",
    "--gpu-request-type": "portion",
    "--existing-pvc": "claimname=c,path=/c,ro",
    "--new-pvc": "claimname=c,path=/c,size=10Gi,storageclass=fast,volumemode=Block,accessmode-rwo,accessmode-rwm,ro",
    "--nfs": "server=s,path=/p,mountpath=/m,readwrite",
    "--host-path": "path=/p,mount=/m,mount-propagation=hosttocontainer,readwrite",
    "--git-sync": "name=g,repository=r,path=/p,branch=b,rev=v,secret=s",
    "--s3": "name=s,bucket=b,path=/p,url=http://u,accesskey=k",
    "--configmap-map-volume": "name=c,path=/p,subpath=s,default-mode=0644",
    "--secret-volume": "name=s,path=/p,default-mode=0600",
    "--empty-dir-volume": "path=/dev/shm,medium=memory,size-limit=1Gi",
    "--datavolume": "id=d,path=/p",
    "--toleration": "key=k,operator=exists,effect=noschedule,seconds=3",
    "--priority": "very-high",
    "--preemptibility": "preemptible",
    "--label": "a=b",
    "--annotation": "a=b=c",
    "--port": "service-type=nodeport,container=80,external=8080",
    "--external-url": "container=8888,name=n,url=http://u",
    "--user-group-source": "fromTheImage",
    "--seccomp-profile": "runtimedefault",
    "--isolation": "Process",
    "--notify": "https://hook",
    "--resume-from": "old:a.pt",
}
BAD = {
    "--workers": "ten",
    "--cpu-core-request": "few",
    "--cpu-memory-request": "ten",
    "--max-time": "soon",
    "--environment": "A",
    "--existing-pvc": "claimname=c,pth=/c",
    "--new-pvc": "size=ten,path=/c",
    "--host-path": "path=/p,mount=/m,mount-propagation=x",
    "--port": "container=http",
    "--isolation": "jail",
    "--label": "=x",
    "--image-pull-my-credentials": "type=ngcApiKey,name=x",
}


def sample(flag: Flag) -> list[str]:
    name = flag.names.split()[-1]
    if flag.read is None:
        return [name]
    plain = {readers.whole: "2", readers.number: "0.5", readers.size: "10Gi"}
    return [name, VALUES.get(name) or plain.get(flag.read, "text")]


def body(*words: str) -> dict[str, Any]:
    submit = training.pytorch.commands["submit"]
    with submit.make_context("submit", list(words)) as context:
        return with_master(collect(context.params))


def parsed(*words: str) -> Submission:
    found = body(*words)
    same = {key: found[key] for key in ("spec", "masterSpec", "torchyard") if key in found}
    same["spec"] = {"command": "x", **same["spec"]}
    return parse_submission({"kind": "distributed", **same})


@pytest.mark.parametrize("name", FLAGS)
def test_flag_fills_a_known_field(name: str) -> None:
    flag = FLAGS[name]
    found: Any = parsed(*sample(flag)).model_dump(mode="json", by_alias=True, exclude_unset=True)
    if name == "--master-no-pvcs":
        return
    for part in flag.field.removesuffix("[]").split("."):
        found = found[part]
    assert found not in (None, [], {})


@pytest.mark.parametrize("name", BAD)
def test_value_that_cannot_be_read(name: str, cli: Cli) -> None:
    ran = cli("training", "pytorch", "submit", "x", name, BAD[name])
    assert ran.code == 2
    assert name in ran.err
    assert ran.out == ""


def test_flags_have_different_names() -> None:
    names = [name for flag in FLAGS.values() for name in flag.names.split()]
    assert len(names) == len(set(names))


def test_run_shares_its_flags() -> None:
    assert {name for flag in flags_of_run() for name in flag.names.split()} >= RUN_FLAGS


def test_the_tutorials_line() -> None:
    found = parsed(
        "ddp", "-p", "default", "--workers", "1", "-g", "1", "-i", "img",
        "--existing-pvc", "claimname=checkpoints,path=/checkpoints",
    )  # fmt: skip
    assert found.replicas == ("master-0", "worker-0")
    assert found.spec.backoff_limit == 6
    assert found.spec.storage.pvc[0].existing_pvc
    assert found.master_spec is None


def test_master_has_the_workers_spec_with_its_changes() -> None:
    found = body(
        "-g", "2", "--workers", "3", "-e", "A=1", "--cpu-core-request", "1", "--existing-pvc", "claimname=c,path=/c",
        "--master-gpu-devices-request", "1", "--master-environment-variable", "B=2", "--master-no-pvcs",
        "--master-args", "x",
    )  # fmt: skip
    assert found["masterSpec"] == {
        "compute": {"gpuDevicesRequest": 1, "cpuCoreRequest": 1.0},
        "environmentVariables": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "storage": {},
        "args": "x",
    }
    assert found["spec"]["storage"]["pvc"]
    assert "masterSpecSameAsWorker" not in found


def test_standard_has_no_workers(cli: Cli) -> None:
    assert cli("training", "submit", "x", "--workers", "1").code == 2
    assert "--workers" not in cli("training", "standard", "submit", "--help").out
    assert "--workers" in cli("pytorch", "submit", "--help").out


def test_help_has_sections(cli: Cli) -> None:
    out = cli("training", "pytorch", "submit", "--help").out
    for section in SECTIONS:
        assert f"\n{section.title}:\n" in out


def test_command_flag_needs_a_command(cli: Cli) -> None:
    assert "nothing follows" in cli("pytorch", "submit", "x", "--command").err
    assert "not both" in cli("pytorch", "submit", "x", "--name-prefix", "y").err


@given(st.dictionaries(st.sampled_from(["claimname", "path", "name"]), st.text(st.characters(exclude_characters=","))))
def test_compound_values_are_read_as_written(parts: dict[str, str]) -> None:
    read = readers.compound({"claimname": "claimName", "path": "path", "name": "name"})
    found = read(",".join(f"{key}={value}" for key, value in parts.items()))
    assert found == {"claimName" if key == "claimname" else key: value for key, value in parts.items()}


@given(st.text())
def test_readers_raise_only_what_is_caught(text: str) -> None:
    from torchyard.domain.errors import Invalid

    for flag in FLAGS.values():
        if flag.read is not None:
            try:
                json.dumps(flag.read(text))
            except (ValueError, Invalid) as error:
                assert str(error)


def test_options_hand_over_what_was_given_and_nothing_else() -> None:
    import click

    @click.command()
    @options(flags_of_run())
    def command(**given: Any) -> dict[str, Any]:
        return collect(given)

    assert command.main([], standalone_mode=False) == {"spec": {}, "torchyard": {}}
