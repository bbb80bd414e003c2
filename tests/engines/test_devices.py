"""Devices are the machine's: several servers, several users, strangers on a GPU, and whoever died holding one."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

from tests.engines.places import LocalPlace, one, over, reach
from torchyard.domain.observation import ReplicaState
from torchyard.engines.engine import Busy, CannotStart
from torchyard.engines.local.devices import Devices, release

ROOT = pytest.mark.skipif(os.getuid() != 0, reason="acting as another user needs root")
# After the imports: another user may not be able to read where this interpreter lies.
NOBODY = "os.setgroups([]); os.setresuid(65534, 65534, 65534)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


def holders(devices: Devices) -> list[str | None]:
    return [device.held_by for device in devices.look()]


def run_python(program: str, *prefix: str) -> str:
    """What a program of its own prints; it ends well."""
    done = subprocess.run([*prefix, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Slots


def test_there_are_as_many_slots_as_cores_but_at_least_four(folder: Path) -> None:
    assert len(Devices(folder, None).units()) == max(4, os.cpu_count() or 1)
    assert len(Devices(folder, 7).units()) == 7
    assert not Devices(folder, 1).are_gpus


def test_the_first_that_fit_are_taken_and_told(folder: Path) -> None:
    mine, yours = Devices(folder, 4), Devices(folder, 4)
    assert holders(mine) == [None] * 4
    first = mine.take(2, "a-1")
    second = yours.take(1, "b-1")
    assert [index for index, _ in first + second] == [0, 1, 2]
    assert holders(mine) == holders(yours) == ["a-1", "a-1", "b-1", None]
    assert all(device.ours and device.held_since is not None for device in mine.look()[:3])
    release([handle for _, handle in first])
    assert holders(yours) == [None, None, "b-1", None]
    assert [index for index, _ in yours.take(2, "c-1")] == [0, 1]


def test_too_few_take_nothing(folder: Path) -> None:
    mine, yours = Devices(folder, 4), Devices(folder, 4)
    taken = mine.take(3, "a-1")
    with pytest.raises(Busy, match=r"1 of the 2"):
        yours.take(2, "b-1")
    assert holders(mine) == ["a-1"] * 3 + [None]
    assert yours.take(0, "c-1") == []
    release([handle for _, handle in taken])


def test_looking_does_not_stand_in_the_way(folder: Path) -> None:
    mine, yours = Devices(folder, 4), Devices(folder, 4)
    for round_ in range(200):
        yours.look()
        taken = mine.take(4, f"a-{round_}")
        assert holders(yours) == [f"a-{round_}"] * 4
        release([handle for _, handle in taken])


def test_all_users_may_lock(folder: Path) -> None:
    old = os.umask(0o077)
    try:
        taken = Devices(folder, 2).take(1, "a-1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    assert stat.S_IMODE((folder / "cpu-0").stat().st_mode) == 0o666
    release([handle for _, handle in taken])


@ROOT
def test_another_user_takes_what_is_free_and_sees_who_has_the_rest(tmp_path: Path) -> None:
    tmp_path.parent.chmod(0o755)
    folder = tmp_path / "locks"
    mine = Devices(folder, 3)
    release([handle for _, handle in mine.take(3, "old-1")])
    taken = mine.take(1, "a-1")
    program = (
        "import os; from pathlib import Path; from torchyard.engines.local.devices import Devices\n"
        f"devices = Devices(Path({str(folder)!r}), 3)\n{NOBODY}"
        "print([index for index, _ in devices.take(2, 'b-1')], [d.held_by for d in devices.look()])"
    )
    for path in [folder, *folder.parents]:
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    said = run_python(program)
    assert said.strip() == "[1, 2] ['a workload of user root', 'b-1', 'b-1']"
    release([handle for _, handle in taken])


@ROOT
def test_what_a_dead_server_took_for_a_living_supervisor_is_held(folder: Path) -> None:
    """In a container's pid namespace the kernel does not tell of a lock whose taker has died."""
    program = (
        "import os; from pathlib import Path; from torchyard.engines.local.devices import Devices\n"
        f"folder = Path({str(folder)!r})\n"
        "reader, writer = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    Devices(folder, 2).take(1, 'a-1')\n"
        "    if os.fork() == 0:\n"
        "        os.close(writer); os.read(reader, 1)\n"
        "    os._exit(0)\n"
        "os.wait(); print([d.held_by for d in Devices(folder, 2).look()]); os.close(writer)"
    )
    nested = ("unshare", "--pid", "--fork", "--mount-proc", "--")
    assert run_python(program) == run_python(program, *nested) == "['a-1', None]\n"


@pytest.mark.parametrize("place", ["file", "file/locks"])
def test_a_file_in_the_place_of_the_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    devices = Devices(tmp_path / place, 2)
    assert holders(devices) == [None, None]
    with pytest.raises(CannotStart) as refused:
        devices.take(1, "a-1")
    assert refused.value.details is not None
    assert "TORCHYARD_LOCK_DIR" in refused.value.details


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o744])
def test_a_folder_that_is_not_for_this_user(folder: Path, mode: int) -> None:
    """Of root, as another server that runs as root may have made it, or of ours with no rights."""
    folder.mkdir(exist_ok=True)
    program = (
        "import os; from pathlib import Path; from torchyard.engines.engine import CannotStart\n"
        "from torchyard.engines.local.devices import Devices\n"
        f"devices = Devices(Path({str(folder)!r}), 2)\n{NOBODY if os.getuid() == 0 else ''}"
        "try: print([d.held_by for d in devices.look()]); devices.take(1, 'a-1')\n"
        "except CannotStart as refusal: print(refusal.details)"
    )
    root = os.getuid() == 0
    if root:
        for path in folder.parents:
            if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
                path.chmod(path.stat().st_mode | 0o011)
    folder.chmod(mode if root else mode & 0o500)
    try:
        said = run_python(program)
    finally:
        folder.chmod(0o1777)
    known, advice = said.splitlines()
    assert known == "[None, None]"
    assert str(folder) in advice and "TORCHYARD_LOCK_DIR" in advice


@pytest.mark.anyio
async def test_servers_with_data_folders_of_their_own_share_slots(tmp_path: Path) -> None:
    locks = {"lock_dir": tmp_path / "locks", "cpu_slots": 2}
    mine, yours = LocalPlace(tmp_path / "mine", **locks), LocalPlace(tmp_path / "yours", **locks)
    engine, other = mine.engine(), yours.engine()
    try:
        handle = await mine.launch(engine, mine.plan(devices=2))
        await reach(engine, handle, ReplicaState.RUNNING)
        waiting = await other.prepare(yours.plan(devices=1))
        with pytest.raises(Busy):
            await yours.launch(other, yours.plan(devices=1))
        (node,) = await other.nodes()
        assert [device.held_by for device in node.devices] == [handle.key] * 2
        await mine.end(handle.key, "worker-0")
        seen = one(await over(engine, handle))
        assert seen.devices == (0, 1)
        (node,) = await other.nodes()
        assert [device.free for device in node.devices] == [True, True]
        assert one(await other.observe(waiting)).state is ReplicaState.PREPARED
    finally:
        await mine.clear()
        await yours.clear()


# GPUs, as NVML tells of them


@dataclass
class Nvml:
    """A driver's library: GPUs with the pids that use them."""

    gpus: list[list[int]] = field(default_factory=list)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nvml]:
    library, machine = ModuleType("pynvml"), Nvml([[], [], []])

    class NVMLError(Exception):
        pass

    @dataclass
    class Process:
        pid: int

    facts = {
        "NVMLError": NVMLError,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: len(machine.gpus),
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda index: f"Card {index}",
        "nvmlDeviceGetUUID": lambda index: f"GPU-{index}abc-uuid",
        "nvmlDeviceGetComputeRunningProcesses": lambda index: [Process(pid) for pid in machine.gpus[index]],
    }
    for name, value in facts.items():
        setattr(library, name, value)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield machine


def test_a_gpu_with_a_foreign_process_is_busy_and_says_whose(folder: Path, nvml: Nvml) -> None:
    nvml.gpus[1] = [os.getpid()]
    devices = Devices(folder, 16)
    assert devices.are_gpus
    seen = devices.look()
    assert [device.kind for device in seen] == ["Card 0", "Card 1", "Card 2"]
    assert seen[1].held_by is not None
    assert str(os.getpid()) in seen[1].held_by
    assert not seen[1].ours
    taken = devices.take(2, "a-1")
    assert [index for index, _ in taken] == [0, 2]
    with pytest.raises(Busy):
        devices.take(1, "b-1")
    release([handle for _, handle in taken])


def test_our_own_process_is_no_stranger(folder: Path, nvml: Nvml) -> None:
    devices = Devices(folder, None)
    taken = devices.take(1, "a-1")
    nvml.gpus[0] = [os.getpid()]
    assert holders(devices) == ["a-1", None, None]
    release([handle for _, handle in taken])


@pytest.mark.parametrize("visible", ["2,0", "GPU-2abc-uuid,GPU-0abc-uuid", "GPU-2abc,0"])
def test_the_server_keeps_to_the_gpus_it_was_given(
    folder: Path, nvml: Nvml, monkeypatch: pytest.MonkeyPatch, visible: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    devices = Devices(folder, None)
    assert [device.index for device in devices.look()] == [0, 2]
    taken = devices.take(2, "a-1")
    assert [index for index, _ in taken] == [0, 2]
    release([handle for _, handle in taken])


@pytest.mark.anyio
async def test_a_replica_sees_the_gpus_it_has(here: LocalPlace, nvml: Nvml) -> None:
    holder = Devices(here.settings.lock_dir, None).take(1, "other-1")
    seen = await here.output(here.run("sh", "-c", "echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES", devices=2))
    none = await here.output(here.run("sh", "-c", "echo [$CUDA_VISIBLE_DEVICES]", devices=0))
    assert (seen, none) == (["PCI_BUS_ID 1,2"], ["[]"])
    release([handle for _, handle in holder])


@pytest.mark.gpu
@pytest.mark.anyio
async def test_a_real_gpu(here: LocalPlace) -> None:
    import torch

    (node,) = await here.engine().nodes()
    assert len(node.devices) == torch.cuda.device_count()
    program = "import torch; print(torch.cuda.device_count()); torch.ones(1, device='cuda')"
    assert await here.output(here.run(sys.executable, "-c", program, devices=1)) == ["1"]
    assert all(device.kind != "cpu" for device in node.devices)
