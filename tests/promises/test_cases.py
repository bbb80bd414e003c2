"""Failures that people have met elsewhere, made again with small programs: what `explain` says of them afterwards."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.place import Place

TORN = "PytorchStreamReader failed reading zip archive: failed finding central directory."


def claim(place: Place, name: str) -> Path:
    """A claim, and the folder that it is."""
    place.torchyard("pvc", "create", name, "--size", "1G", "--path", f"/{name}")
    return place.data / "projects" / "default" / "claims" / name


def mounted(name: str) -> dict[str, object]:
    """A spec's words for it."""
    return {"storage": {"pvc": [{"claimName": name, "path": f"/{name}", "existingPvc": True}]}}


def checkpoints(place: Place, name: str) -> dict[str, bool]:
    """Path -> is it whole?"""
    listed = json.loads(place.torchyard("checkpoint", "list", name, "-o", "json").stdout)
    return {found["path"]: found["complete"] for found in listed}


KILLED_IN_SAVE = f"""
import os, pathlib, signal, zipfile
path = pathlib.Path(os.environ["TORCHYARD_VOLUME_LAST"]) / "last.pt"
if path.exists() and not zipfile.is_zipfile(path):
    raise RuntimeError("{TORN}")
with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
    archive.writestr("last/data.pkl", b"x" * 100_000)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_while_it_saved_in_place(place: Place) -> None:
    """Case b04."""
    claim(place, "last")
    place.script("killed_in_save.py", KILLED_IN_SAVE)
    place.submit("b04", "python killed_in_save.py", backoff=9, spec=mounted("last"))
    attempts = place.reach("b04", "Failed")["attempts"]
    assert [a["replicas"][0]["signal"] for a in attempts] == [signal.SIGKILL, None, None, None]
    verdict = place.explain("b04")
    assert "the checkpoint that it loaded is incomplete" in verdict["sentence"]
    assert "known failure: tornCheckpoint" in verdict["evidence"]
    assert "no complete checkpoint of this workload was found" in verdict["evidence"]
    assert "write to a temporary name first, then rename" in verdict["nextStep"]
    assert checkpoints(place, "b04") == {"last.pt": False}


FILLS = """
import errno, os, pathlib, sys, zipfile
folder = pathlib.Path(os.environ["TORCHYARD_VOLUME_SMALL"])
for step in range(20):
    try:
        with zipfile.ZipFile(folder / f"step{step:04d}.pt", "w") as archive:
            archive.writestr("archive/data.pkl", b"x" * 8_000_000)
    except OSError as problem:
        if problem.errno != errno.ENOSPC or sys.argv[1] == "plain":
            raise
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598") from None
    print(f"step={step} saved", flush=True)
"""


@pytest.fixture
def small_claim(place: Place) -> Iterator[Path]:
    """A claim on a disk of 32 MB."""
    folder = claim(place, "small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    place.torchyard("pvc", "delete", "small", "-y", code=None)


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small disk needs root")
def test_the_disk_of_a_claim_is_full(place: Place, small_claim: Path) -> None:
    """Case b05, with torch's riddle and with the system's own words."""
    place.script("fills.py", FILLS)
    for words in ("riddle", "plain"):
        name = place.submit(f"b05-{words}", f"python fills.py {words}", spec=mounted("small"))
        place.reach(name, "Failed")
        verdict = place.explain(name)
        assert "the disk was full" in verdict["sentence"]
        assert "known failure: diskFull" in verdict["evidence"]
        assert any(line.startswith("newest complete checkpoint: step0003.pt") for line in verdict["evidence"])
        assert "make room or keep fewer checkpoints" in verdict["nextStep"]
        assert checkpoints(place, name) == {f"step000{step}.pt": step < 4 for step in range(5)}
        for path in small_claim.iterdir():
            path.unlink()


SMALL_SHM = """
import mmap, os, sys
size = 100 << 20
file = os.open("/dev/shm/torch_1_2_0", os.O_RDWR | os.O_CREAT)
if sys.argv[1] == "words":
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as problem:
        said = f"unable to allocate shared memory(shm) for file </torch_1_2_0>: {problem.strerror} ({problem.errno})"
        raise RuntimeError(said) from None
os.ftruncate(file, size)
memory = mmap.mmap(file, size)
for start in range(0, size, 1 << 20):
    memory[start : start + (1 << 20)] = b"x" * (1 << 20)
"""


@pytest.mark.parametrize("how", ["words", "bus-error"])
def test_shared_memory_is_too_small(place: Place, how: str) -> None:
    """Case b13: a pod's 64 MB, in the words of today's torch and by SIGBUS as before."""
    place.script("small_shm.py", SMALL_SHM)
    name = place.submit(f"b13-{how}", f"python small_shm.py {how}", isolation="sandbox")
    place.reach(name, "Failed")
    verdict = place.explain(name)
    assert "shared memory (/dev/shm of 64.0 MiB) was too small, the disk is not the matter" in verdict["sentence"]
    assert verdict["fault"]["signal"] == (None if how == "words" else signal.SIGBUS)
    assert "largeShmRequest" in verdict["nextStep"]
    volume = {"storage": {"emptyDirVolume": [{"path": "/dev/shm", "sizeLimit": "200M"}]}}
    place.submit(f"{name}-more", f"python small_shm.py {how}", isolation="sandbox", spec=volume)
    place.reach(f"{name}-more", "Completed")


BUFFERED = """
import os, signal
for step in range(30):
    print(f"step={step}")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_last_lines_of_a_killed_program(place: Place) -> None:
    """Case b17: they are there; where the user turned that off, an empty log is not taken for "nothing ran"."""
    place.script("buffered.py", BUFFERED)
    place.submit("b17", "python buffered.py")
    own = {"environmentVariables": [{"name": "PYTHONUNBUFFERED", "value": ""}]}
    place.submit("b17-buffered", "python buffered.py", spec=own)
    place.reach("b17", "Failed")
    assert place.said("b17") == [f"step={step}" for step in range(30)]
    place.reach("b17-buffered", "Failed")
    assert place.said("b17-buffered") == []
    told = place.explain("b17-buffered")["sentence"]
    assert "killed by SIGKILL (9)" in told and "may still have been in its buffer" in told


ONE_FAILS = """
import os, pathlib, sys, time
here = pathlib.Path(os.environ["TORCHYARD_WORKLOAD"])
here.mkdir(exist_ok=True)
rank = os.environ["RANK"]
(here / f"ready-{rank}").touch()
while len(list(here.glob("ready-*"))) < 2:
    time.sleep(0.01)
if rank == "1":
    time.sleep(0.3)
    (here / "failed").touch()
    sys.exit(1)
while sys.argv[1] == "for ever" or not (here / "failed").exists():
    time.sleep(0.02)
print("finished", flush=True)
"""


@pytest.mark.parametrize("other", ["for ever", "well"])
def test_the_other_node_goes_on(place: Place, other: str) -> None:
    """Case b20: the workload has failed, whether the other node would go on for ever or ends well itself."""
    place.script("one_fails.py", ONE_FAILS)
    name = place.submit(f"b20-{other.replace(' ', '-')}", f"torchrun one_fails.py '{other}'", workers=1)
    description = place.reach(name, "Failed")
    verdict = place.explain(name)
    assert (verdict["fault"]["replica"], verdict["fault"]["rank"], verdict["fault"]["code"]) == ("worker-0", 1, 1)
    states = {replica["name"]: replica["state"] for replica in description["attempts"][0]["replicas"]}
    assert states == {"master-0": "ended", "worker-0": "ended"}
    assert place.said(name, rank=0) == ([] if other == "for ever" else ["finished"])
    place.torchyard("wait", name, code=1)
