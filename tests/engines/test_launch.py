"""Launch on this machine: what a replica sees, what it is told and by whom, and that it outlives its server."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.engines.places import DEVICES, LocalPlace, command_line, one, over, plan, reach, replica, until
from torchyard.domain.launch import Handle, Mount
from torchyard.domain.observation import ReplicaState
from torchyard.engines.engine import CannotStart, Secrets

pytestmark = pytest.mark.anyio
ENV = ("env",)


def archive(place: LocalPlace, **files: str) -> str:
    """Keep a folder that travelled; its content hash."""
    digest = "ab" * 32
    path = place.settings.data / "code" / f"{digest}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size, member.mode = len(text), 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
    return f"sha256:{digest}"


async def variables(place: LocalPlace, *argv: str, **caller: str) -> dict[str, str]:
    """The environment of a replica that prints it."""
    lines = await place.output(place.run(*(argv or ENV), env={"TORCHYARD_ATTEMPT": "x"}), **caller)
    return dict(line.split("=", 1) for line in lines if "=" in line)


# Environment


async def test_a_process_has_its_callers_environment_with_the_plan_over_it(here: LocalPlace) -> None:
    made = here.run("env", env={"BATCH": "32", "MODE": "plan"})
    lines = await here.output(made, PATH=os.environ["PATH"], MODE="caller", SPECIAL="a=b c")
    assert {"BATCH=32", "MODE=plan", "SPECIAL=a=b c", f"PATH={os.environ['PATH']}"} <= set(lines)


async def test_without_a_caller_it_has_little_of_the_servers(here: LocalPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_SERVER", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    engine = here.engine()
    handle = await engine.prepare(here.run("env"))
    await engine.start(handle, Secrets())
    await over(engine, handle)
    said = [line.text async for line in engine.logs(handle, "worker-0", 0, follow=False)]
    assert {f"PATH={os.environ['PATH']}", "LANG=C.UTF-8"} <= set(said)
    assert not [line for line in said if "OF_THE_SERVER" in line]


async def test_a_sealed_variable_wins(here: LocalPlace) -> None:
    made = here.run("env", env={"API_KEY": "(sealed)"})
    named = {"worker-0": {"API_KEY": "k1"}}
    assert "API_KEY=k1" in await here.output(made, named, PATH=os.environ["PATH"], API_KEY="the caller's")


async def test_each_replica_gets_the_secrets_of_its_own_spec(here: LocalPlace) -> None:
    engine = here.engine()
    made = here.note(plan(*(replica(name, "sh", "-c", "echo $API_KEY") for name in ("master-0", "worker-0"))))
    named = {"master-0": {"API_KEY": "m"}, "worker-0": {"API_KEY": "w"}}
    handle = await here.launch(engine, made, named)
    await over(engine, handle)
    for name, value in (("master-0", "m"), ("worker-0", "w")):
        assert [line.text async for line in engine.logs(handle, name, 0, follow=False)] == [value]


async def test_secrets_are_never_written_down(here: LocalPlace) -> None:
    secret = "s3cr3t-of-the-caller"
    engine = here.engine()
    handle = await here.launch(engine, here.plan(), PATH=os.environ["PATH"], TOKEN=secret)
    await reach(engine, handle, ReplicaState.RUNNING)
    await here.order(handle.key, "worker-0", 'test -n "$TOKEN" && exit 0', "exit 9")
    assert here.alive(handle.key)
    assert not [pid for pid in here.alive(handle.key) if secret in command_line(pid)]
    assert one(await over(engine, handle)).code == 0
    for path in here.folder.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


async def test_rendezvous(here: LocalPlace) -> None:
    seen = await variables(here)
    assert seen["PET_MASTER_ADDR"] == "127.0.0.1"
    assert 1024 < int(seen["PET_MASTER_PORT"]) < 65536
    assert Path(seen["PET_LOG_DIR"]).name == "ranks"
    assert not {"MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} & set(seen)


async def test_rendezvous_of_several_and_the_users_own_words(here: LocalPlace) -> None:
    engine = here.engine()
    own = {"GLOO_SOCKET_IFNAME": "eth7", "MASTER_PORT": "1"}
    replicas = [replica("worker-0", "env", env=own), replica("worker-1", "env", node_rank=1)]
    handle = await here.launch(engine, here.note(plan(*replicas)))
    port = (await over(engine, handle)).port
    said = {
        name: {line.text async for line in engine.logs(handle, name, 0, follow=False)}
        for name in ("worker-0", "worker-1")
    }
    assert {"GLOO_SOCKET_IFNAME=eth7", "NCCL_SOCKET_IFNAME=lo", "MASTER_PORT=1"} <= said["worker-0"]
    assert {"GLOO_SOCKET_IFNAME=lo", "MASTER_ADDR=127.0.0.1", f"MASTER_PORT={port}"} <= said["worker-1"]
    assert all(f"PET_MASTER_PORT={port}" in lines for lines in said.values())


async def test_every_attempt_has_a_port_of_its_own(here: LocalPlace) -> None:
    engine = here.engine()
    first = here.plan()
    ports = set()
    for number in (1, 2, 3):
        again = plan(*first.replicas, workload_id=first.workload_id, number=number)
        ports.add((await engine.observe(await engine.prepare(again))).port)
    assert len(ports) == 3


async def test_a_claim_is_a_folder_for_a_process(here: LocalPlace) -> None:
    engine = here.engine()
    await engine.make_claim("vision", "my-data")
    made = here.run(
        "sh",
        "-c",
        'echo made > "$TORCHYARD_VOLUME_MY_DATA/file"; echo $TORCHYARD_RESUME_FROM',
        mounts=(Mount(claim="my-data", path="/data"),),
        env={"TORCHYARD_VOLUME_MY_DATA": "/data", "TORCHYARD_RESUME_FROM": "/data/last.pt"},
        project="vision",
    )
    folder = here.settings.data / "projects" / "vision" / "claims" / "my-data"
    assert await here.output(made) == [str(folder / "last.pt")]
    assert [entry.path for entry in await engine.list_files("vision", "my-data", "")] == ["file"]


async def test_slots_are_no_gpus(here: LocalPlace) -> None:
    lines = await here.output(here.run("env", devices=2))
    assert not [line for line in lines if line.startswith("CUDA_VISIBLE_DEVICES")]


# Folders


async def test_the_working_folder_in_place(here: LocalPlace, tmp_path: Path) -> None:
    assert await here.output(here.run("pwd", workdir=str(tmp_path))) == [str(tmp_path)]


async def test_every_replica_has_its_own_copy_of_the_code(here: LocalPlace) -> None:
    code = archive(here, **{"run.sh": "cat sub/data; echo $1 >> sub/data; cat sub/data", "sub__data": "0\n"})
    engine = here.engine()
    replicas = [replica(f"worker-{i}", "sh", "run.sh", str(i + 1), node_rank=i) for i in range(2)]
    handle = await here.launch(engine, here.note(plan(*replicas, code=code)))
    assert [r.code for r in (await over(engine, handle)).replicas] == [0, 0]
    for i in range(2):
        said = [line.text async for line in engine.logs(handle, f"worker-{i}", 0, follow=False)]
        assert said == ["0", "0", str(i + 1)]


@pytest.mark.parametrize("name", ["../../evil", "/tmp/torchyard-evil", "a/../../../evil"])
async def test_code_stays_in_its_folder(here: LocalPlace, name: str) -> None:
    code = archive(here, **{name: "bad"})
    try:
        await here.output(here.run("true", code=code))
    except CannotStart:
        pass
    assert not [path for path in here.settings.data.rglob("*evil") if "work" not in path.parts]
    assert not Path("/tmp/torchyard-evil").exists()


async def refusal(place: LocalPlace, *argv: str, **more: object) -> str:
    engine = place.engine()
    made = place.run(*argv, **more)
    with pytest.raises(CannotStart) as refused:
        await engine.prepare(made)
    assert (await engine.observe(await engine.prepare(place.plan()))).replicas
    attempts = place.settings.data / "projects" / "default" / "workloads" / made.workload_id / "attempts"
    assert not list(attempts.glob("*"))
    assert not list(attempts.glob(".*"))
    return f"{refused.value.message}: {refused.value.details}"


async def test_what_can_never_start_is_refused_with_a_sentence(here: LocalPlace) -> None:
    assert "/no/such/folder" in await refusal(here, "true", workdir="/no/such/folder")
    assert "pvc create ckpt" in await refusal(here, "true", mounts=(Mount(claim="ckpt", path="/ckpt"),))
    assert "submit it again" in await refusal(here, "true", code=f"sha256:{'00' * 32}")
    assert "command" in await refusal(here)


@pytest.mark.parametrize("keep", [0, 1, 30, -5000])
async def test_damaged_code_is_refused(here: LocalPlace, keep: int) -> None:
    code = archive(here, data="".join(map(str, range(20000))))
    path = here.settings.data / "code" / f"{code.removeprefix('sha256:')}.tar.gz"
    path.write_bytes(path.read_bytes()[:keep])
    assert "submit it again" in await refusal(here, "true", code=code)


async def test_prepare_by_many_at_once(here: LocalPlace) -> None:
    made = here.plan(replicas=2)
    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(here.engine().prepare, made)
    handle = await here.engine().prepare(made)
    assert [path.name for path in Path(handle.ref).parent.iterdir()] == ["1"]
    assert len((await here.engine().observe(handle)).replicas) == 2


async def test_remove_takes_what_a_killed_server_left(here: LocalPlace) -> None:
    engine = here.engine()
    made = here.run("true")
    handle = await here.launch(engine, made)
    await over(engine, handle)
    # Prepared and never told to anybody; and one that was not even whole.
    await engine.prepare(replace(made, key=f"{made.workload_id}-2", attempt=2))
    (Path(handle.ref).parent / ".3-deadbeef" / "worker-0").mkdir(parents=True)
    await engine.remove(made.project, made.workload_id)
    assert not Path(handle.ref).parent.parent.exists()


# Start and stop


async def test_a_replica_outlives_its_server(here: LocalPlace) -> None:
    made = here.plan(devices=1, replicas=2)
    handle = await here.engine().prepare(made)
    program = (
        "import asyncio, os, signal; from pathlib import Path\n"
        "from torchyard.engines.engine import Secrets; from torchyard.engines.local.engine import LocalEngine\n"
        "from torchyard.domain.launch import Handle; from torchyard.settings import Settings\n"
        f"engine = LocalEngine(Settings(data=Path({str(here.settings.data)!r}), cpu_slots={DEVICES}, "
        f"lock_dir=Path({str(here.settings.lock_dir)!r})))\n"
        f"handle = Handle(cluster='local', key={handle.key!r}, ref={handle.ref!r})\n"
        "asyncio.run(engine.start(handle, Secrets({'PATH': os.environ['PATH']})))\n"
        "os.kill(0, signal.SIGHUP); os.kill(0, signal.SIGINT); os.kill(os.getpid(), signal.SIGKILL)"
    )
    server = await anyio.to_thread.run_sync(
        lambda: subprocess.run([sys.executable, "-c", program], start_new_session=True, check=False)
    )
    assert server.returncode in (-signal.SIGHUP, -signal.SIGINT, -signal.SIGKILL)
    engine = here.engine()
    await reach(engine, handle, ReplicaState.RUNNING)
    (node,) = await engine.nodes()
    assert [d.held_by for d in node.devices if not d.free] == [handle.key] * 2
    await here.end(handle.key, "worker-0", 0)
    await here.end(handle.key, "worker-1", 0)
    assert [r.code for r in (await over(engine, handle)).replicas] == [0, 0]
    assert [here.starts(handle.key, f"worker-{i}") for i in range(2)] == [1, 1]


async def test_the_supervisor_is_nobodys_child(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.plan())
    started = json.loads((Path(handle.ref) / "worker-0" / "started").read_text())
    fields = Path(f"/proc/{started['pid']}/stat").read_text().rpartition(")")[2].split()
    parent, group, session = int(fields[1]), int(fields[2]), int(fields[3])
    assert parent != os.getpid()
    assert os.getsid(0) != session
    assert os.getpgid(0) != group


async def test_the_command_holds_no_lock(here: LocalPlace) -> None:
    lines = await here.output(here.run("sh", "-c", "ls -l /proc/self/fd", devices=2))
    assert not [line for line in lines if str(here.settings.lock_dir) in line or "replica.lock" in line]


def before_supervising(handle: Handle, line: str) -> None:
    """Let the supervisors of an attempt do something before all else."""
    path = Path(handle.ref) / "agent" / "supervisor.py"
    future = "from __future__ import annotations\n"
    path.write_text(path.read_text().replace(future, f"{future}{line}\n"))


async def test_a_slow_machine_starts_it_all_the_same(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await engine.prepare(here.run("true"))
    before_supervising(handle, "import time; time.sleep(1.3)")
    await engine.start(handle, Secrets({"PATH": os.environ["PATH"]}))
    assert one(await over(engine, handle)).code == 0


async def test_a_supervisor_that_dies_at_once_says_why(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await engine.prepare(here.run("true"))
    before_supervising(handle, "import sys; sys.exit('no room to work in')")
    with pytest.raises(CannotStart, match="no room to work in"):
        await engine.start(handle, Secrets())
    assert one(await engine.observe(handle)).state is ReplicaState.PREPARED


async def test_one_of_two_cannot_start(here: LocalPlace) -> None:
    """The other one may run; a stop ends the attempt, and gives the devices back."""
    engine = here.engine()
    handle = await engine.prepare(here.plan(replicas=2, devices=1))
    (Path(handle.ref) / "worker-1" / "replica.json").write_text("{")
    with pytest.raises(CannotStart, match="worker-1"):
        await engine.start(handle, Secrets({"PATH": os.environ["PATH"]}))
    await engine.stop(handle, 0, "one cannot start")
    seen = await over(engine, handle)
    assert [r.stopped for r in seen.replicas] == [True, True]
    await here.gone(handle.key)
    (node,) = await engine.nodes()
    assert all(device.free for device in node.devices)


async def test_what_cannot_be_found_ends_as_in_a_shell(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.run("no-such-program", "x"))
    seen = one(await over(engine, handle))
    assert seen.code == 127
    said = [line.text async for line in engine.logs(handle, "worker-0", 0, follow=False)]
    assert any("no-such-program" in line for line in said)


async def test_a_stop_and_a_start_at_once(here: LocalPlace) -> None:
    engine = here.engine()
    for pause in (0, 0.01, 0.03, 0.06, 0.1):
        handle = await engine.prepare(here.plan(devices=1, replicas=2))
        async with anyio.create_task_group() as group:
            group.start_soon(engine.start, handle, Secrets({"PATH": os.environ["PATH"]}))
            await anyio.sleep(pause)
            await engine.stop(handle, 0.5, "changed my mind")
        await engine.stop(handle, 0.5, "changed my mind")
        seen = await over(engine, handle)
        assert all(r.stopped and r.state is ReplicaState.ENDED for r in seen.replicas)
        await here.gone(handle.key)


async def test_a_shorter_grace_shortens(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.plan(grace=600))
    await reach(engine, handle, ReplicaState.RUNNING)
    await here.order(handle.key, "worker-0", "trap 'echo asked' TERM; echo deaf; while :; do read x; done")
    size = await until(lambda: engine.log_size(handle, "worker-0"))
    await engine.stop(handle, 600, "enough")

    async def asked() -> bool:
        return await engine.log_size(handle, "worker-0") > size

    await until(asked)
    await engine.stop(handle, 900, "enough")
    assert not (await engine.observe(handle)).over
    with anyio.fail_after(15):
        await engine.stop(handle, 0.1, "enough")
        seen = one(await over(engine, handle))
    assert (seen.signal, seen.killed_after_grace, seen.stopped) == (9, True, True)
    said = [line.text async for line in engine.logs(handle, "worker-0", 0, follow=False)]
    assert said == ["deaf", "asked"]


async def test_an_end_is_the_commands_end(here: LocalPlace) -> None:
    """What the command leaves behind takes time to go; who failed first must not seem to have failed last."""
    engine = here.engine()
    os.mkfifo(here.folder / "fifo")
    stray = "sh -c \"trap '' TERM; touch deaf; read x < fifo\" &"
    script = f"{stray} until test -e deaf; do sleep 0.01; done; date +%s.%N > ended; exit 3"
    handle = await here.launch(engine, here.run("sh", "-c", script, workdir=str(here.folder)))
    seen = one(await over(engine, handle))
    assert (seen.code, seen.left_behind) == (3, ("sh",))
    assert seen.ended_at is not None
    assert abs(seen.ended_at.timestamp() - float((here.folder / "ended").read_text())) < 0.7


async def test_a_long_data_folder(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path / ("d" * 100) / ("e" * 100))
    assert await place.output(place.run("echo", "deep")) == ["deep"]
    await place.clear()
