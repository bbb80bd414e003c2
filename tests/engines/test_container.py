"""Container isolation with a real runtime: what an image brings, what a replica sees, how it ends."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.images import buildah, make_python, make_torch
from tests.promises.place import Place, until

pytestmark = [
    pytest.mark.skipif("TORCHYARD_TEST_CONTAINER" not in os.environ, reason="TORCHYARD_TEST_CONTAINER is not set"),
]
DIGITS = Path(__file__).parent.parent.parent / "examples" / "digits"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    here = Place(tmp_path_factory.mktemp("containers"))
    here.start()
    here.torchyard("pvc", "create", "checkpoints", "--size", "10TB", "--access-mode", "RWX", "--path", "/checkpoints")
    yield here
    here.end()


def run(place: Place, name: str, *command: str, code: int = 0) -> str:
    """Run in the small image with the claim mounted; what was printed."""
    words = ("run", "--name", name, "-i", make_python(), "--existing-pvc", "claimname=checkpoints,path=/checkpoints")
    return place.torchyard(*words, "--", *command, code=code).stdout


def test_the_image_the_claim_and_nothing_of_the_caller(place: Place) -> None:
    place.env["OF_CALLER"] = "yes"
    said = run(
        place, "sees", "sh", "-c", "echo $FROM_IMAGE-$OF_CALLER-$PATH; cat /etc/hostname; echo x > /checkpoints/f"
    )
    assert said.splitlines() == ["yes--/usr/local/bin:/bin", "worker-0"]
    assert "f" in place.torchyard("pvc", "ls", "checkpoints:/", "-o", "name").stdout


def test_exit_codes_and_exec(place: Place) -> None:
    run(place, "exits", "sh", "-c", "exit 7", code=7)
    place.torchyard("run", "-d", "--name", "stays", "-i", make_python(), "--", "sleep", "600")
    place.reach("stays", "Running")
    assert place.torchyard("exec", "stays", "--", "sh", "-c", "echo $FROM_IMAGE").stdout == "yes\n"
    place.torchyard("stop", "stays")
    place.torchyard("wait", "stays", code=130)


def test_an_image_that_is_not_there(place: Place) -> None:
    ran = place.torchyard("run", "--name", "no-image", "-i", "localhost/no-such-image:1", "--", "true", code=125)
    assert "no-such-image" in ran.stderr
    assert place.describe("no-image")["attempts"][0]["cause"] == "start"


def test_an_image_without_python(place: Place) -> None:
    container = buildah("from", "scratch")
    buildah("commit", "--quiet", "--rm", container, "localhost/torchyard-test-empty:1")
    ran = place.torchyard("run", "--name", "bare", "-i", "localhost/torchyard-test-empty:1", "--", "true", code=125)
    assert "python3" in ran.stderr
    assert place.describe("bare")["attempts"][0]["cause"] == "start"


@pytest.mark.torch
@pytest.mark.timeout(600)
def test_the_digits_image_trains_in_two_containers(place: Place, tmp_path: Path) -> None:
    context = tmp_path / "context"
    shutil.copytree(DIGITS, context)
    text = (context / "run.sh").read_text()
    assert " 100 25" in text
    (context / "run.sh").write_text(text.replace(" 100 25", " 4 2"))
    image = "localhost/torchyard-test-digits:1"
    buildah("build", "--pull-never", "--build-arg", f"BASE={make_torch()}", "--tag", image, str(context))
    words = (
        "training",
        "pytorch",
        "submit",
        "digits",
        "-i",
        image,
        "--workers",
        "1",
        "-g",
        "1",
        "--backoff-limit",
        "0",
    )
    place.torchyard(
        *words, "--existing-pvc", "claimname=checkpoints,path=/checkpoints", "--command", "--", "bash", "run.sh"
    )
    until(lambda: place.row("digits")["phase"] in ("Completed", "Failed"), 400)
    log = place.torchyard("logs", "digits").stdout
    assert place.row("digits")["phase"] == "Completed", log
    assert "epoch 4/4" in log and "test accuracy" in log
    found = json.loads(place.torchyard("checkpoint", "list", "digits", "-o", "json").stdout)
    assert [(c["path"], c["complete"]) for c in found] == [("snapshot.pt", True)]
