"""Which isolation a submission gets, in the order of the design, and what is said where it cannot be had."""

from typing import Any

import pytest
from tests.render.builders import CHECKPOINTS, submission

from torchyard.domain.errors import Invalid
from torchyard.domain.observation import Capabilities
from torchyard.render.isolation import pick

ALL = Capabilities(sandbox=True, container=True)
NONE = Capabilities()
HASH = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("changes", "folder_exists", "isolation", "why"),
    [
        ({}, False, "process", "nothing is mounted"),
        ({"workingDir": "/home/me"}, True, "process", "nothing is mounted"),
        ({"workingDir": "src"}, False, "process", "nothing is mounted"),
        ({"workingDir": "/runai"}, False, "sandbox", "the working folder /runai is not on this machine"),
        ({"storage": {"pvc": [CHECKPOINTS]}}, False, "sandbox", "storage is mounted at /checkpoints"),
        ({"storage": {"pvc": [{**CHECKPOINTS, "exclude": True}]}}, False, "process", "nothing is mounted"),
        ({"storage": {"emptyDirVolume": [{"path": "/scratch"}]}}, False, "sandbox", "storage is mounted at /scratch"),
        ({"image": "a/b:1"}, False, "container", "the spec names the image a/b:1 and no code"),
        ({"image": "a/b:1", "storage": {"pvc": [CHECKPOINTS]}}, False, "container", "the image a/b:1"),
        ({"image": "a/b:1", "torchyard": {"code": HASH}}, False, "process", "nothing is mounted"),
        (
            {"image": "a/b:1", "torchyard": {"code": HASH}, "storage": {"pvc": [CHECKPOINTS]}},
            False,
            "sandbox",
            "storage",
        ),
        ({"image": "a/b:1", "torchyard": {"isolation": "process"}}, False, "process", "asked for"),
        ({"torchyard": {"isolation": "sandbox"}}, True, "sandbox", "asked for"),
        ({"image": "a/b:1", "torchyard": {"isolation": "container", "code": HASH}}, False, "container", "asked for"),
        ({"workingDir": "/runai", "torchyard": {"isolation": "process"}}, False, "process", "asked for"),
    ],
)
def test_order(changes: dict[str, Any], folder_exists: bool, isolation: str, why: str) -> None:
    choice = pick(submission(**changes), ALL, folder_exists=folder_exists)
    assert choice.isolation == isolation
    assert choice.why.startswith(f"isolation {isolation}: ")
    assert why in choice.why


@pytest.mark.parametrize(
    ("changes", "install"),
    [
        ({"storage": {"pvc": [CHECKPOINTS]}}, "apt install bubblewrap"),
        ({"workingDir": "/runai"}, "apt install bubblewrap"),
        ({"image": "a/b:1"}, "apt install podman"),
    ],
)
def test_what_cannot_run_is_refused_with_the_install_line_and_the_other_way_out(
    changes: dict[str, Any], install: str
) -> None:
    with pytest.raises(Invalid) as caught:
        pick(submission(**changes), NONE, folder_exists=False)
    assert install in caught.value.message
    assert "--isolation process" in (caught.value.details or "")
    assert [p.field for p in caught.value.problems] == ["torchyard.isolation"]


def test_the_engines_own_reason_is_quoted() -> None:
    able = Capabilities(
        why_not={"sandbox": "user namespaces are switched off: sysctl kernel.unprivileged_userns_clone=1"}
    )
    with pytest.raises(Invalid, match="user namespaces are switched off"):
        pick(submission(torchyard={"isolation": "sandbox"}), able, folder_exists=True)


def test_an_explicit_process_is_always_accepted() -> None:
    asked = submission(
        image="a/b:1", workingDir="/runai", storage={"pvc": [CHECKPOINTS]}, torchyard={"isolation": "process"}
    )
    assert pick(asked, NONE, folder_exists=False).isolation == "process"


def test_a_container_needs_an_image_in_every_replica() -> None:
    with pytest.raises(Invalid, match="needs an image"):
        pick(submission(torchyard={"isolation": "container"}), ALL, folder_exists=True)
    half = submission("distributed", image="a/b:1", masterSpec={"command": "bash run.sh"})
    with pytest.raises(Invalid, match="needs an image"):
        pick(half, ALL, folder_exists=True)


def test_the_masters_own_mount_counts() -> None:
    asked = submission("distributed", masterSpec={"command": "x", "storage": {"pvc": [CHECKPOINTS]}})
    assert pick(asked, ALL, folder_exists=True).isolation == "sandbox"
