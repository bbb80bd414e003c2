"""The local engine: joins folders, supervisors, devices and claims to the engine protocol."""

import asyncio
import compileall
import os
import shutil
import socket
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path

from torchyard.domain.errors import NotFound, Unavailable
from torchyard.domain.launch import Handle, LaunchPlan
from torchyard.domain.observation import Capabilities, FileEntry, LogLine, Node, Observation, ReplicaState
from torchyard.engines.engine import Exec, FileReader, Secrets
from torchyard.engines.local import attempt as attempts
from torchyard.engines.local import exec as execs
from torchyard.engines.local import files, isolation, logfile, supervise
from torchyard.engines.local.devices import Devices
from torchyard.engines.local.layout import Layout
from torchyard.engines.local.observe import observe, sweep
from torchyard.engines.local.watch import Watch
from torchyard.settings import Settings

FOLLOW_SECONDS = 0.1
BATCH = 500
MOST_REPLICAS = 128
"""Of one workload. Each is three processes or more, and this is one machine."""


class LocalEngine:
    """This machine. Holds nothing that cannot be found again in the data folder."""

    def __init__(self, settings: Settings, cluster: str = "local") -> None:
        self._layout = Layout(settings.data)
        self._cluster = cluster
        self._devices = Devices(settings.lock_dir, settings.cpu_slots)
        self._watch = Watch()
        self._capabilities = Capabilities(in_place=True, replicas=MOST_REPLICAS)

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def open(self) -> None:
        # Compiled once, copied with each attempt: no replica waits for the compiler.
        await asyncio.to_thread(compileall.compile_dir, attempts.AGENT, quiet=2)
        no_sandbox, no_container = await asyncio.gather(
            asyncio.to_thread(isolation.sandbox_works), asyncio.to_thread(isolation.container_works)
        )
        why_not = {"sandbox": no_sandbox, "container": no_container}
        self._capabilities = Capabilities(
            sandbox=no_sandbox is None,
            container=no_container is None,
            in_place=True,
            replicas=MOST_REPLICAS,
            why_not={name: sentence for name, sentence in why_not.items() if sentence},
        )

    async def close(self) -> None:
        self._watch.close()

    async def prepare(self, plan: LaunchPlan) -> Handle:
        folder = await asyncio.to_thread(attempts.prepare, self._layout, plan, self._devices.are_gpus)
        return Handle(cluster=self._cluster, key=plan.key, ref=str(folder))

    async def start(self, handle: Handle, secrets: Secrets) -> None:
        await asyncio.to_thread(supervise.start, Path(handle.ref), self._devices, secrets)
        self._watch.add(handle.key, Path(handle.ref))
        self._watch.ring(handle.key)

    async def observe(self, handle: Handle) -> Observation:
        seen = await asyncio.to_thread(observe, Path(handle.ref))
        if seen.gone:
            # Whoever launches the next attempt must be alone.
            await asyncio.to_thread(sweep, handle.key)
        for replica in seen.replicas:
            if replica.state is ReplicaState.LOST:
                await asyncio.to_thread(sweep, handle.key, replica.name)
        if seen.over:
            self._watch.drop(handle.key)
        else:
            self._watch.add(handle.key, Path(handle.ref))
        return seen

    async def stop(self, handle: Handle, grace: float, reason: str) -> None:
        replicas = [r.name for r in (await asyncio.to_thread(observe, Path(handle.ref))).replicas if not r.over]
        folders = [Path(handle.ref) / name for name in replicas]
        stops = (asyncio.to_thread(supervise.stop, folder, grace, reason) for folder in folders)
        overdue = await asyncio.gather(*stops, return_exceptions=True)
        self._watch.ring(handle.key)
        for name, late in zip(replicas, overdue, strict=True):
            if isinstance(late, BaseException):
                raise late
            if late:
                await asyncio.to_thread(sweep, handle.key, name)

    async def remove(self, project: str, workload_id: str) -> None:
        folder = self._layout.workload(project, workload_id)
        for attempt in await asyncio.to_thread(lambda: sorted(folder.glob("attempts/[0-9]*"))):
            key = f"{workload_id}-{attempt.name}"
            await asyncio.to_thread(sweep, key)
            self._watch.drop(key)
        await asyncio.to_thread(shutil.rmtree, folder, True)

    def changes(self) -> AsyncIterator[str]:
        return self._watch.changes()

    async def logs(self, handle: Handle, replica: str, after: int, follow: bool) -> AsyncIterator[LogLine]:
        folder = Path(handle.ref) / replica
        number = int(handle.key.rpartition("-")[2])
        while True:
            over = not follow or await asyncio.to_thread(self._is_over, handle, replica)
            lines = logfile.read(folder / "log", after, number, replica)
            while batch := await asyncio.to_thread(lambda: list(islice(lines, BATCH))):  # noqa: B023
                for line in batch:
                    yield line
                after = batch[-1].cursor
            if over:
                return
            await asyncio.sleep(FOLLOW_SECONDS)

    def _is_over(self, handle: Handle, replica: str) -> bool:
        seen = observe(Path(handle.ref))
        return all(r.over for r in seen.replicas if r.name == replica)

    async def log_size(self, handle: Handle, replica: str) -> int:
        return await asyncio.to_thread(logfile.size, Path(handle.ref) / replica / "log")

    async def exec(
        self, handle: Handle, replica: str, argv: tuple[str, ...], tty: bool, rows: int = 24, columns: int = 80
    ) -> Exec:
        return await execs.start(Path(handle.ref) / replica, argv, tty, rows, columns)

    async def make_claim(self, project: str, claim: str) -> None:
        try:
            await asyncio.to_thread(self._layout.claim(project, claim).mkdir, mode=0o755, parents=True, exist_ok=True)
        except OSError as problem:
            raise Unavailable(f"the claim's folder cannot be made: {problem.strerror}", "free space") from problem

    async def remove_claim(self, project: str, claim: str) -> None:
        folder = self._layout.claim(project, claim)
        try:
            await asyncio.to_thread(shutil.rmtree, folder)
        except FileNotFoundError:
            return
        except OSError as problem:
            what = f"{problem.filename or folder} cannot be deleted: {problem.strerror}"
            raise Unavailable(what, "delete it as its owner, then delete the claim again") from problem

    async def list_files(self, project: str, claim: str, path: str) -> tuple[FileEntry, ...]:
        return await asyncio.to_thread(files.listing, self._root(project, claim), path)

    async def open_file(self, project: str, claim: str, path: str) -> FileReader:
        return await asyncio.to_thread(files.open_file, self._root(project, claim), path)

    async def put_file(self, project: str, claim: str, path: str, data: AsyncIterator[bytes]) -> None:
        await files.put(self._root(project, claim), path, data)

    async def remove_file(self, project: str, claim: str, path: str) -> None:
        await asyncio.to_thread(files.remove, self._root(project, claim), path)

    def _root(self, project: str, claim: str) -> Path:
        root = Path(claim) if claim.startswith("/") else self._layout.claim(project, claim)
        if not root.is_dir():
            raise NotFound(f"there is no claim {claim!r} in project {project}", "see `torchyard pvc list`")
        return root

    async def nodes(self) -> tuple[Node, ...]:
        devices = await asyncio.to_thread(self._devices.look)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return (Node(name=socket.gethostname(), devices=devices, cpu_cores=os.cpu_count() or 1, memory=memory),)
