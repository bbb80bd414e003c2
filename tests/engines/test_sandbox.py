"""The sandbox, with bubblewrap itself: paths are where they were asked for, and the machine stays as it was."""

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engines.places import LocalPlace, one, over, reach
from tests.engines.test_launch import archive
from torchyard.domain.launch import Mount, Scratch
from torchyard.domain.observation import LostBecause, ReplicaState
from torchyard.domain.spec import Isolation
from torchyard.engines.local.isolation import sandbox_works

WHY_NOT = None if "TORCHYARD_TEST_SANDBOX" in os.environ else sandbox_works()
pytestmark = [pytest.mark.anyio, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]
POD_SHM = 64 * 1024 * 1024


async def inside(place: LocalPlace, script: str, **more: object) -> list[str]:
    """What a shell script in a sandbox prints."""
    made = place.run("sh", "-ec", script, isolation=Isolation.SANDBOX, **{"shm": POD_SHM, **more})
    return await place.output(made, PATH=os.environ["PATH"], HOME=os.environ.get("HOME", "/"), LC_ALL="C", TOKEN="t")


async def claims(place: LocalPlace, *names: str) -> list[Path]:
    for name in names:
        await place.engine().make_claim("default", name)
    return [place.settings.data / "projects" / "default" / "claims" / name for name in names]


async def test_a_claim_at_a_path_that_the_machine_does_not_have(here: LocalPlace) -> None:
    before = sorted([path.name for path in Path("/").iterdir()])
    (folder,) = await claims(here, "ckpt")
    script = "echo hi > /checkpoints/deep/../file; mkdir -p /checkpoints/deep; ls /checkpoints; echo $V"
    (folder / "deep").mkdir()
    said = await inside(here, script, mounts=(Mount(claim="ckpt", path="/checkpoints"),), env={"V": "/checkpoints"})
    assert said == ["deep", "file", "/checkpoints"]
    assert (folder / "file").read_text() == "hi\n"
    assert sorted([path.name for path in Path("/").iterdir()]) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/srv/torchyard-test/a", "/srv/torchyard-test/b"),
        ("/srv/a-of-torchyard", "/srv/b-of-torchyard"),
        ("/opt/a-of-torchyard/x", "/opt/b-of-torchyard"),
        ("/new-of-torchyard/a", "/new-of-torchyard/b"),
        ("/new-of-torchyard", "/new-of-torchyard/b"),
        ("/run/a-of-torchyard", "/var/run/b-of-torchyard"),
        ("/usr/local/share/new-of-torchyard", "/usr/new-of-torchyard"),
    ],
)
async def test_two_claims_beside_each_other(here: LocalPlace, first: str, second: str) -> None:
    left, right = await claims(here, "left", "right")
    (left / "l").touch()
    (right / "r").touch()
    parent = Path("/", Path(first).parts[1])
    before = sorted(parent.iterdir()) if parent.exists() else None
    mounts = (Mount(claim="left", path=first), Mount(claim="right", path=second))
    script = f"echo {first}/l {second}/r; ls -d {first}/l {second}/r; echo new > {first}/l; ls /usr/bin/env"
    said = await inside(here, script, mounts=mounts)
    assert said[1:] == [*sorted([f"{first}/l", f"{second}/r"]), "/usr/bin/env"]
    assert (left / "l").read_text() == "new\n"
    assert (sorted(parent.iterdir()) if parent.exists() else None) == before


async def test_scratch_beside_a_claim(here: LocalPlace) -> None:
    (folder,) = await claims(here, "data")
    (folder / "f").touch()
    scratch = tuple(Scratch(path=path, memory=True, size=1024 * 1024) for path in ("/srv/scratch", "/cache", "/srv/s2"))
    script = "ls /srv/data; df -k --output=size /cache /srv/scratch | tail -2; touch /srv/s2/x /cache/x"
    said = await inside(here, script, mounts=(Mount(claim="data", path="/srv/data"),), scratch=scratch)
    assert said[0] == "f"
    assert [int(line) for line in said[1:]] == [1024, 1024]


async def test_a_claim_over_a_folder_of_the_machine(here: LocalPlace, tmp_path: Path) -> None:
    (folder,) = await claims(here, "data")
    (folder / "f").touch()
    covered = tmp_path / "covered"
    covered.mkdir()
    (covered / "mine").touch()
    assert await inside(here, f"ls {covered}", mounts=(Mount(claim="data", path=str(covered)),)) == ["f"]
    assert [path.name for path in covered.iterdir()] == ["mine"]


async def test_a_claim_that_is_read_only(here: LocalPlace) -> None:
    (folder,) = await claims(here, "data")
    (folder / "f").write_text("x\n")
    mount = Mount(claim="data", path="/data-of-torchyard", read_only=True)
    script = "cat /data-of-torchyard/f; if echo y > /data-of-torchyard/f; then echo written; fi"
    assert await inside(here, script, mounts=(mount,)) == ["x"]


async def test_shared_memory_of_the_size_asked_for(here: LocalPlace) -> None:
    script = "df -k --output=size /dev/shm | tail -1"
    assert [int(line) for line in await inside(here, script)] == [64 * 1024]
    assert [int(line) for line in await inside(here, script, shm=3 * 1024 * 1024)] == [3 * 1024]
    of_machine = os.statvfs("/dev/shm")
    size = of_machine.f_blocks * of_machine.f_frsize // 1024
    assert [int(line) for line in await inside(here, script, shm=None)] == [size]


async def test_own_name_own_processes_shared_network(here: LocalPlace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')"
        script = f'hostname; echo $$; ls -d /proc/[0-9]* | wc -l; {sys.executable} -c "{program}"'
        name, pid, count, reached = await inside(here, script)
    assert (name, reached) == ("worker-0", "reached")
    assert int(pid) < 50
    assert int(count) < 10
    assert socket.gethostname() != "worker-0"


async def test_environment(here: LocalPlace) -> None:
    seen = dict(line.split("=", 1) for line in await inside(here, "env", env={"OWN": "1"}))
    assert (seen["PATH"], seen["LC_ALL"], seen["OWN"]) == (os.environ["PATH"], "C", "1")
    assert (seen["GLOO_SOCKET_IFNAME"], seen["NCCL_SOCKET_IFNAME"]) == ("lo", "lo")
    assert "TOKEN" not in seen


async def test_its_own_name_is_an_address(here: LocalPlace) -> None:
    """torchrun waits for a minute where it is none."""
    asked = f"{sys.executable} -c 'import socket; print(socket.gethostbyname(socket.gethostname()))'"
    assert await inside(here, asked) == ["127.0.0.1"]
    assert "localhost" in " ".join(await inside(here, "cat /etc/hosts"))


async def test_a_sealed_variable_of_the_spec_is_let_in(here: LocalPlace) -> None:
    made = here.run("sh", "-c", "echo $WANDB_API_KEY$OTHER_KEY", isolation=Isolation.SANDBOX, shm=POD_SHM)
    named = {"worker-0": {"WANDB_API_KEY": "k"}}
    assert await here.output(made, named, PATH=os.environ["PATH"], OTHER_KEY="no") == ["k"]


@pytest.mark.parametrize(
    ("workdir", "cwd"), [(None, "/workspace"), ("/app-of-torchyard", "/app-of-torchyard"), ("sub", "/workspace/sub")]
)
async def test_where_the_code_is(here: LocalPlace, workdir: str | None, cwd: str) -> None:
    code = archive(here, **{"main.py": "print('main')", "sub__main.py": "print('sub')"})
    said = await inside(here, f"pwd; {sys.executable} main.py; touch made", workdir=workdir, code=code)
    assert said == [cwd, "sub" if workdir == "sub" else "main"]
    assert not Path("/workspace").exists()


async def test_a_folder_of_the_machine_to_work_in(here: LocalPlace, tmp_path: Path) -> None:
    assert await inside(here, "pwd; touch made", workdir=str(tmp_path)) == [str(tmp_path)]
    assert (tmp_path / "made").exists()


async def test_links_of_the_machines_root_are_links(here: LocalPlace) -> None:
    links = [path for path in Path("/").iterdir() if path.is_symlink() and path.is_dir()]
    said = await inside(here, f"readlink {' '.join(map(str, links))}; ls -d {' '.join(f'{p}/' for p in links)}")
    assert said[: len(links)] == [str(path.readlink()) for path in links]


async def test_nothing_outlives_its_supervisor(here: LocalPlace) -> None:
    engine = here.engine()
    made = here.plan()
    handle = await here.launch(engine, replace(made, isolation=Isolation.SANDBOX))
    await reach(engine, handle, ReplicaState.RUNNING)
    await here.order(handle.key, "worker-0", "setsid sleep 1000 & echo on")
    running = await engine.exec(handle, "worker-0", ("sh", "-c", "hostname"), tty=False)
    assert [data async for _, data in running.output()] == [b"worker-0\n"]
    await running.close()
    os.kill(json.loads((Path(handle.ref) / "worker-0" / "started").read_text())["pid"], signal.SIGKILL)
    assert one(await over(engine, handle)).lost is LostBecause.SUPERVISOR
    assert not here.alive(handle.key)


async def test_a_user_without_rights(tmp_path: Path) -> None:
    """In folders that are shut to this user (/root, for most) there is nothing to be kept; a claim can be there."""
    drop = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"] if os.getuid() == 0 else []
    if subprocess.run([*drop, "true"], capture_output=True, check=False).returncode:
        pytest.skip("root cannot become another user here: user namespaces are refused, as in a chroot")
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    program = (
        "import asyncio, os; from pathlib import Path\n"
        "from tests.engines.places import LocalPlace; from torchyard.domain.launch import Mount\n"
        "from torchyard.domain.spec import Isolation\n"
        "async def main():\n"
        f"    place = LocalPlace(Path({str(tmp_path)!r}) / 'mine')\n"
        "    engine = place.engine()\n"
        "    await engine.open(); assert engine.capabilities.sandbox, engine.capabilities.why_not\n"
        "    await engine.make_claim('default', 'ckpt')\n"
        f"    for path in ('{shut}/ckpt', '/checkpoints', '/srv/ckpt'):\n"
        "        made = place.run('sh', '-c', f'echo x > {path}/file; ls {path}; id -u', isolation=Isolation.SANDBOX,\n"
        "            shm=2**20, mounts=(Mount(claim='ckpt', path=path),))\n"
        "        print(await place.output(made, PATH=os.environ['PATH']))\n"
        "asyncio.run(main())"
    )
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([*drop, sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    user = "1000" if drop else str(os.getuid())
    assert done.stdout.splitlines() == [str(["file", user])] * 3
