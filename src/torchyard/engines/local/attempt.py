"""Step one of launch: the attempt folder, made whole under another name and renamed: it is there or it is not."""

import gzip
import json
import os
import shutil
import socket
import sys
import tarfile
import uuid
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torchyard.agent
from torchyard.domain.archive import checked
from torchyard.domain.errors import Unavailable
from torchyard.domain.launch import LaunchPlan, ReplicaPlan
from torchyard.domain.spec import Isolation
from torchyard.engines.engine import CannotStart
from torchyard.engines.local.isolation import (
    INSIDE,
    WITHOUT_PYTHON,
    Surroundings,
    hosts_of,
    keeper_in_container,
    keeper_in_process,
    keeper_in_sandbox,
)
from torchyard.engines.local.layout import Layout
from torchyard.render.volumes import relocate

FORMAT = 1
CODE_AT = "/workspace"
AGENT = Path(torchyard.agent.__file__).parent


def prepare(layout: Layout, plan: LaunchPlan, gpus: bool) -> Path:
    """The attempt's folder; made if it is not there. Raises CannotStart, Unavailable."""
    final = layout.attempt(plan.project, plan.workload_id, plan.attempt)
    if final.exists():
        return final
    fresh = final.with_name(f".{final.name}-{uuid.uuid4().hex[:8]}")
    try:
        fresh.mkdir(mode=0o700, parents=True)
        _fill(layout, plan, final, fresh, gpus)
        fresh.rename(final)
    except OSError as problem:
        if not final.exists():
            raise Unavailable(
                f"the attempt folder cannot be made: {problem}", "free space, then it goes on"
            ) from problem
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return final


def _fill(layout: Layout, plan: LaunchPlan, final: Path, fresh: Path, gpus: bool) -> None:
    shutil.copytree(AGENT, fresh / "agent")
    port = _free_port()
    claims = {m.claim: layout.claim(plan.project, m.claim) for r in plan.replicas for m in r.mounts}
    for claim, folder in claims.items():
        if not folder.is_dir():
            raise CannotStart(f"the claim {claim} has no folder", f"make it: torchyard pvc create {claim}")
    if plan.isolation is Isolation.CONTAINER:
        # The image's user may be anybody; the folders above keep the other users of this machine out.
        for folder in claims.values():
            if layout.owns(folder):
                folder.parent.chmod(0o700)
                folder.chmod(0o777)
    for replica in plan.replicas:
        folder = fresh / replica.name
        for name in ("run", "ranks", "work"):
            (folder / name).mkdir(mode=0o700, parents=True)
        if plan.code is not None:
            _unpack(layout.code(plan.code), folder / "work")
        if plan.isolation is Isolation.CONTAINER:
            for name in ("run", "ranks", "work"):
                (folder / name).chmod(0o777)
        if plan.isolation is Isolation.SANDBOX:
            (folder / "hosts").write_text(hosts_of(replica.name))
        record = _record(layout, plan, replica, final, claims, port, gpus)
        (folder / "replica.json").write_text(json.dumps(record))
    names = [replica.name for replica in plan.replicas]
    devices = {replica.name: replica.devices for replica in plan.replicas}
    facts = {"format": FORMAT, "key": plan.key, "replicas": names, "devices": devices, "port": port}
    facts |= {"isolation": plan.isolation.value, "workload": plan.workload}
    (fresh / "attempt.json").write_text(json.dumps(facts))


def _record(
    layout: Layout,
    plan: LaunchPlan,
    replica: ReplicaPlan,
    final: Path,
    claims: Mapping[str, Path],
    port: int,
    gpus: bool,
) -> dict[str, Any]:
    """What the supervisor is to do."""
    home = final / replica.name
    container = plan.isolation is Isolation.CONTAINER
    code_at, cwd = _where(plan, replica, home)
    name = f"torchyard-{plan.key}-{replica.name}"
    around = Surroundings(final, home, claims, frozenset(filter(layout.owns, claims.values())), code_at, name)
    cleanup: list[str] | None = None
    match plan.isolation:
        case Isolation.PROCESS:
            keeper = keeper_in_process(sys.executable, around)
        case Isolation.SANDBOX:
            keeper = keeper_in_sandbox(sys.executable, replica, around)
        case Isolation.CONTAINER:
            keeper, cleanup = keeper_in_container(sys.executable, replica, around, gpus)
    if not replica.argv and not replica.by_image:
        raise CannotStart("there is no command to run", "say what to run: --command -- COMMAND")
    ranks = f"{INSIDE}/ranks" if container else str(home / "ranks")
    env = {**replica.env, **dict(_rendezvous(plan, replica, port, ranks))}
    if plan.isolation is Isolation.PROCESS:
        env = relocate(env, replica.mounts, {claim: str(folder) for claim, folder in claims.items()})
    return {
        "format": FORMAT,
        "attempt": plan.key,
        "replica": replica.name,
        "node_rank": replica.node_rank,
        "nproc": replica.nproc,
        "keeper_argv": keeper,
        "run_inside": f"{INSIDE}/run" if container else str(home / "run"),
        "cleanup_argv": cleanup,
        "not_found": WITHOUT_PYTHON if container else None,
        "keep_env": container,
        "argv": list(replica.argv),
        "cwd": cwd,
        "env": env,
        "rank_logs": str(home / "ranks"),
        "grace": plan.grace,
        "isolation": plan.isolation.value,
    }


def _where(plan: LaunchPlan, replica: ReplicaPlan, home: Path) -> tuple[str | None, str | None]:
    """Where the code is seen, and the folder that the command starts in (None: the image's own)."""
    wanted = replica.workdir
    if plan.isolation is Isolation.PROCESS:
        if plan.code is not None:
            return None, str(home / "work" / wanted) if wanted and not wanted.startswith("/") else str(home / "work")
        if wanted is not None and wanted.startswith("/"):
            if not Path(wanted).is_dir():
                raise CannotStart(f"the working folder {wanted} is not there", "make it, or name another one")
            return None, wanted
        return None, str(home / "work")
    if plan.code is None and wanted is not None:
        return None, wanted
    if plan.code is None and plan.isolation is Isolation.CONTAINER:
        return None, None
    if wanted is not None and wanted.startswith("/"):
        return wanted, wanted
    return CODE_AT, f"{CODE_AT}/{wanted}" if wanted else CODE_AT


def _rendezvous(plan: LaunchPlan, replica: ReplicaPlan, port: int, ranks: str) -> Iterator[tuple[str, str]]:
    """The part of the rendezvous that only this machine knows; the user's own settings win."""
    own = {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(port), "PET_LOG_DIR": ranks}
    if len(plan.replicas) > 1:
        own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if len(plan.replicas) > 1 or plan.isolation is Isolation.SANDBOX:
        own |= {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
    own["TORCHYARD_NODE"] = socket.gethostname()
    for name, value in own.items():
        if name not in replica.env:
            yield name, value


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            # Ours: older Pythons have none, and warnings of newer ones are of no use here.
            tar.extraction_filter = lambda member, _: member
            for member in checked(tar):
                member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
                member.mode = (member.mode & 0o755) | (0o700 if member.isdir() else 0o600)
                tar.extract(member, folder)
    except FileNotFoundError as problem:
        raise CannotStart(f"the code {archive.name[:12]} is not here any more", "submit it again") from problem
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as problem:
        raise CannotStart(f"the code cannot be unpacked: {problem}", "submit it again") from problem
    folder.chmod(0o755)
