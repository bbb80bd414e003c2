"""Disks that are full, and others on the same machine: nothing is lost that can be kept, and nobody is run over."""

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.place import Place, until

ROOT = pytest.mark.skipif(os.getuid() != 0, reason="mounting a small disk needs root")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """32 MB that can be filled."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 65536):
                pass
        except OSError:
            pass
    return filler


def further(place: Place, lines: int) -> None:
    """Training has printed so many lines more."""

    def count() -> int:
        return int((place.work / "count").read_text() or "0")

    goal = until(count) + lines
    until(lambda: count() >= goal)


@ROOT
def test_a_full_disk_under_log_and_database(small_disk: Path, tmp_path: Path) -> None:
    place = Place(tmp_path / "place", TORCHYARD_DATA=str(small_disk / "data"), TORCHYARD_DISK_RESERVE_GB="0")
    place.data = small_disk / "data"
    place.start()
    try:
        counting = (
            "i=0; while ! test -e go; do i=$((i+1)); echo line $i; echo $i > count; sleep 0.01; done; echo the end"
        )
        place.submit("full", f"sh -c '{counting}'")
        place.reach("full", "Running")
        filler = fill(small_disk)
        further(place, 1000)
        filler.unlink()
        further(place, 50)
        (place.work / "go").touch()
        place.reach("full", "Completed")
        ran = place.torchyard("logs", "full")
        said = ran.stdout.splitlines()
        assert said[-1] == "the end"
        seen = [int(line.split()[1]) for line in said if line.startswith("line ")]
        assert seen == sorted(set(seen))
        (mark,) = [line for line in (*said, *ran.stderr.splitlines()) if "lost" in line]
        assert f"{seen[-1] - len(seen)} log lines" in mark
    finally:
        place.end()


@ROOT
def test_a_full_claim_is_named(small_disk: Path, tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.start()
    try:
        text = f"open({str(small_disk / 'snapshot.pt')!r}, 'wb').write(b'x' * 64_000_000)"
        place.script("save.py", text)
        place.submit("saves", "python save.py")
        place.reach("saves", "Failed")
        verdict = place.explain("saves")
        assert "disk" in (verdict["sentence"] + " ".join(verdict["evidence"])).lower()
        assert "No space left on device" in verdict["fault"]["exception"]
    finally:
        place.end()


def test_two_servers_share_the_devices_of_the_machine(tmp_path: Path) -> None:
    locks = {"TORCHYARD_LOCK_DIR": str(tmp_path / "locks"), "TORCHYARD_CPU_SLOTS": "2"}
    one, two = Place(tmp_path / "one", **locks), Place(tmp_path / "two", **locks)
    one.start()
    two.start()
    try:
        one.submit("mine", "sleep 600", spec={"compute": {"gpuDevicesRequest": 2}})
        one.reach("mine", "Running")
        two.submit("theirs", "true", spec={"compute": {"gpuDevicesRequest": 1}})
        waits = two.reach("theirs", "Pending")
        assert "0 of 2 are free" in waits["phaseMessage"]
        one.torchyard("stop", "mine")
        two.reach("theirs", "Completed")
    finally:
        one.end()
        two.end()


def test_a_stranger_on_a_slot(tmp_path: Path) -> None:
    place = Place(tmp_path / "place", TORCHYARD_LOCK_DIR=str(tmp_path / "locks"), TORCHYARD_CPU_SLOTS="1")
    (tmp_path / "locks").mkdir()
    with (tmp_path / "locks" / "cpu-0").open("w") as slot:
        json.dump({"key": "x", "uid": 12345, "since": 0}, slot)
        slot.flush()
        fcntl.flock(slot, fcntl.LOCK_EX)
        place.start()
        try:
            place.submit("waits", "true", spec={"compute": {"gpuDevicesRequest": 1}})
            assert "user 12345" in place.reach("waits", "Pending")["phaseMessage"]
            fcntl.flock(slot, fcntl.LOCK_UN)
            place.reach("waits", "Completed")
        finally:
            place.end()


def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.start()
    try:
        assert place.server is not None
        refused = place.torchyard("server", "run", code=2)
        assert f"pid {place.server.pid}" in refused.stderr
    finally:
        place.end()
