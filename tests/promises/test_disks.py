"""Disks that are full, and disks that cannot be trusted: training goes on, what is lost is said, the end is known."""

import ctypes
import os
import select
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.promises.place import Place, marked, until
from torchyard.domain.errors import Unavailable
from torchyard.store.lock import check_disk

ROOT = pytest.mark.skipif(os.getuid() != 0, reason="mounting a disk needs root")
COUNTER = """
import os, pathlib, sys, time
name = os.environ["TORCHYARD_WORKLOAD"]
number = 0
while not pathlib.Path(f"{name}.go").exists():
    number += 1
    print("line", number, flush=True)
    pathlib.Path(f"{name}.new").write_text(str(number))
    os.replace(f"{name}.new", f"{name}.count")
    time.sleep(0.005)
print("the end", flush=True)
"""


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


def further(place: Place, name: str, lines: int) -> None:
    """Training has printed so many lines more."""
    count = place.work / f"{name}.count"
    goal = int(count.read_text()) + lines
    until(lambda: int(count.read_text()) >= goal)


@ROOT
def test_a_full_disk_under_log_and_database(small_disk: Path, tmp_path: Path) -> None:
    place = Place(tmp_path / "place", TORCHYARD_DATA=str(small_disk / "data"), TORCHYARD_DISK_RESERVE_GB="0")
    place.start()
    try:
        script = place.script("counter.py", COUNTER)
        for name in ("goes-on", "ends"):
            place.submit(name, f"python {script}")
        for name in ("goes-on", "ends"):
            place.reach(name, "Running")
            until((place.work / f"{name}.count").exists)
        key = place.key("ends")
        filler = fill(small_disk)
        further(place, "goes-on", 300)
        (place.work / "ends.go").touch()
        until(lambda: not marked(key))
        further(place, "goes-on", 100)
        # There is no room to write down that it ended.
        place.reach("ends", "Unknown")
        told = place.torchyard("explain", "ends").stdout
        assert "cannot be written down: the disk under the data folder is full" in told
        assert "torchyard server prune" in told
        assert place.row("goes-on")["phase"] == "Running"
        filler.unlink()
        place.reach("ends", "Completed")
        assert "LogLost" in {event["reason"] for event in place.describe("ends")["events"]}
        further(place, "goes-on", 50)
        (place.work / "goes-on.go").touch()
        place.reach("goes-on", "Completed")
        lines = place.lines("goes-on")
        assert lines[-1].text == "the end"
        seen = [int(line.text.split()[1]) for line in lines if line.text.startswith("line ")]
        assert seen == sorted(set(seen))
        (mark,) = [line.text for line in lines if line.kind == "t"]
        assert f"{seen[-1] - len(seen)} log lines were lost here" in mark
        assert any(mark in line for line in place.torchyard("logs", "goes-on").stderr.splitlines())
    finally:
        place.end()


NFS = "36 25 0:31 / /home rw,relatime shared:1 - nfs4 files.example:/home rw\n"
LOCAL = "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "lustre", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_refused(kind: str) -> None:
    with pytest.raises(Unavailable, match=rf"/home/ann/yard is on a network file system \({kind}\)"):
        check_disk(Path("/home/ann/yard"), LOCAL + NFS.replace("nfs4", kind))
    check_disk(Path("/var/lib/yard"), LOCAL + NFS.replace("nfs4", kind))
    check_disk(Path("/home/ann/yard"), LOCAL + NFS + NFS.replace("nfs4", "ext4"))


@pytest.fixture
def fuse(tmp_path: Path) -> Iterator[Path]:
    """A folder whose files come from a process, as those of sshfs do; it has none."""
    folder = tmp_path / "remote"
    folder.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    done = libc.mount(b"sshfs", str(folder).encode(), b"fuse.sshfs", 0, options.encode())
    assert done == 0, os.strerror(ctypes.get_errno())
    end, enough = os.pipe2(os.O_CLOEXEC)
    thread = threading.Thread(target=serve_files, args=(device, end))
    thread.start()
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    os.close(enough)
    thread.join()
    os.close(end)
    os.close(device)


def serve_files(device: int, end: int) -> None:
    """Answer the kernel as a file system does that has an empty root (fuse(4)), until the other end of `end` closes."""
    answers: dict[int, Callable[[], bytes]] = {
        26: lambda: struct.pack("=IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8),  # INIT
        3: lambda: struct.pack("=QII6Q10I", 60, 0, 0, 1, 0, 0, 0, 0, 0, *[0] * 3, 0o40700, 2, *[0] * 5),  # GETATTR
    }
    while end not in select.select([device, end], [], [])[0]:
        try:
            request = os.read(device, 1 << 17)
        except OSError:  # unmounted, and nobody has it open any more
            return
        _, opcode, unique = struct.unpack_from("=IIQ", request)
        if opcode in (2, 42):  # FORGET: no answer is expected
            continue
        body = answers[opcode]() if opcode in answers else b""
        error = 0 if opcode in answers else -2 if opcode == 1 else -38  # LOOKUP: there is no such file
        os.write(device, struct.pack("=IiQ", 16 + len(body), error, unique) + body)


@ROOT
def test_a_server_does_not_start_on_a_file_system_of_another_process(place: Place, fuse: Path) -> None:
    elsewhere = ("env", f"TORCHYARD_DATA={fuse}")
    refused = place.torchyard("server", "run", code=None, before=elsewhere)
    assert refused.returncode == 1, refused
    assert f"the data folder {fuse} is on a network file system (fuse.sshfs)" in refused.stderr
    assert "set TORCHYARD_DATA to a folder on a local disk" in refused.stderr
