"""Each line is in the log once, with the rank that said it."""

import os
import resource
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.agent.replicas import Replica, eventually

Script = Callable[[str], list[str]]
TALK = """
import os, sys
rank = os.environ["RANK"]
for step in range(200):
    print(f"rank {rank} step {step} \\u00fc")
    print(f"rank {rank} warns {step}", file=sys.stderr)
print(f"rank {rank} says no more", end="")
"""


def whole(rank: str) -> list[str]:
    return [*(f"rank {rank} step {step} ü" for step in range(200)), f"rank {rank} says no more"]


@pytest.mark.parametrize("mode", ["PET_REDIRECTS", "PET_TEE"])
@pytest.mark.parametrize("pipe", ["", "2>&1 | tee train.log"])
def test_ranks_are_told_apart(replica: Replica, script: Script, torchrun: str, mode: str, pipe: str) -> None:
    line = f"echo begin; {torchrun} {shlex.join(script(TALK))} {pipe}; echo end"
    replica.run(["bash", "-c", line], {mode: "3"}, node_rank=0)
    assert replica.said() == ["begin", "end"]
    for rank in ("0", "1"):
        assert replica.said(rank) == whole(rank)
        assert replica.said(rank, "e") == [f"rank {rank} warns {step}" for step in range(200)]
    assert replica.said(kind="e") == []
    if mode == "PET_TEE" and pipe:
        assert (replica.attempt / "train.log").read_text().count("rank 1 step") == 200


def test_the_launchers_own_words_are_not_taken_for_copies(replica: Replica, script: Script, torchrun: str) -> None:
    """A rank's unfinished line is copied, and what follows on the same line is the shell's."""
    line = f"{torchrun} {shlex.join(script(TALK))}; echo 'the shell goes on'"
    replica.run(["bash", "-c", line], {"PET_TEE": "3"})
    assert replica.said() == ["the shell goes on"]


def test_without_a_file_of_its_own_a_rank_is_known_by_its_prefix(replica: Replica, torchrun: str) -> None:
    """The user chose another log folder: the copies are all there is."""
    line = r"printf 'one\n\036[0] zero \036[1] first\n\036[0] more\ntwo\n'"
    replica.run(["sh", "-c", line])
    assert replica.said() == ["one", "two"]
    assert replica.said("0") == ["zero more"]
    assert replica.said("1") == ["first"]


def test_other_nodes_have_other_ranks(replica: Replica, script: Script, torchrun: str) -> None:
    replica.run([torchrun, *script(TALK)], {"PET_REDIRECTS": "3", "PET_NODE_RANK": "3"}, node_rank=3)
    assert replica.said("6") == whole("6")
    assert replica.said("7") == whole("7")
    assert {line.rank for line in replica.log()} == {"6", "7"}


def test_restarts_do_not_mix(replica: Replica, script: Script, torchrun: str) -> None:
    rank = script(
        "import os, sys\nturn = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "print('turn', turn, end='')\nsys.exit(turn == '0')\n"
    )
    replica.run([torchrun, *rank], {"PET_REDIRECTS": "3", "PET_MAX_RESTARTS": "1"})
    assert replica.said("0") == ["turn 0", "turn 1"]


def test_a_progress_bar_stays_one_line(replica: Replica, script: Script, torchrun: str) -> None:
    rank = script(
        "import sys, time\n"
        "for step in range(300):\n"
        "    sys.stderr.write(f'\\r{step}%')\n"
        "    sys.stderr.flush()\n"
        "    time.sleep(0.002)\n"
        "sys.stderr.write('\\r300%\\nfinished\\n')\n"
    )
    replica.run([torchrun, *rank], {"PET_TEE": "3"})
    for name in ("0", "1"):
        assert replica.said(name, "e") == ["300%", "finished"]
        assert 1 <= len(replica.said(name, "er")) <= 6
    assert not [line for line in replica.log() if line.rank == "-"]


def test_lines_come_while_it_runs_in_the_order_of_time(replica: Replica, script: Script, torchrun: str) -> None:
    rank = script("import os, time\nprint('here')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('gone')\n")
    replica.prepare([torchrun, *rank], {"PET_REDIRECTS": "3"})
    replica.start()
    eventually(lambda: replica.said("0") == replica.said("1") == ["here"], 5)
    (replica.attempt / "go").touch()
    replica.wait()
    times = [line.at for line in replica.log()]
    assert times == sorted(times)


class Disk:
    """A disk that can be filled: a small file system where one may be mounted, else a limit on file sizes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
        self.mounted = os.getuid() == 0 and subprocess.run(mount, check=False).returncode == 0

    def fill(self, supervisor: int) -> None:
        if self.mounted:
            with (self.folder / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
                while True:
                    ballast.write(bytes(4096))
        else:
            resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))

    def free(self, supervisor: int) -> None:
        if self.mounted:
            (self.folder / "ballast").unlink()
        else:
            resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", str(self.folder)], check=True)


@pytest.fixture
def disk(attempt: Path) -> Iterator[Disk]:
    made = Disk(attempt / "disk")
    shutil.copytree(attempt / "agent", made.folder / "agent")
    yield made
    made.close()


@pytest.mark.parametrize("space_again", [True, False])
def test_a_full_disk_stops_nothing(disk: Disk, script: Script, space_again: bool) -> None:
    replica = Replica(disk.folder)
    argv = script(
        "import os, time\n"
        "def wait(name):\n"
        "    while not os.path.exists(name): time.sleep(0.01)\n"
        "wait('full')\n"
        "for i in range(20000): print('a line of some length, number', i)\n"
        "os.mkdir('said')\n"
        "wait('free')\n"
        "for i in range(10): print('then', i)\n"
    )
    replica.prepare(argv, cwd=str(disk.folder.parent))
    supervisor = replica.start()
    replica.command_pid()
    disk.fill(supervisor.pid)
    (disk.folder.parent / "full").touch()
    eventually((disk.folder.parent / "said").exists)
    if space_again:
        disk.free(supervisor.pid)
    (disk.folder.parent / "free").touch()
    record = replica.wait()
    assert record["code"] == 0
    assert record["lost_log_lines"] > 1000
    assert record["lost_log_lines"] + len(replica.said()) == 20010
    marks = [line.text for line in replica.log() if line.kind == "t"]
    if space_again:
        assert [int(mark.split()[0]) for mark in marks] == [record["lost_log_lines"]]
    replica.end()
