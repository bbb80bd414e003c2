"""The composition root: settings -> store, engines, loop, routes, page -> one ASGI app. No other room knows all."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from sqlalchemy import Engine as Database
from starlette.staticfiles import StaticFiles

from torchyard import __version__
from torchyard.control import loop
from torchyard.control.tokens import actor_of
from torchyard.control.yard import Yard
from torchyard.domain.errors import Unavailable
from torchyard.domain.user import User
from torchyard.engines.engine import Engine
from torchyard.server import errors
from torchyard.server.api import (
    access_keys,
    authorization,
    catalogue,
    checkpoints,
    claims,
    code,
    departments,
    exec,
    explain,
    files,
    health,
    logs,
    org,
    projects,
    prune,
    render,
    submissions,
    tokens,
    ui,
    users,
    workloads,
)
from torchyard.server.auth import Doorkeeper, Gate, ensure_token, os_user
from torchyard.settings import Settings, started_at
from torchyard.store import clusters
from torchyard.store import projects as projects_store
from torchyard.store import users as users_store
from torchyard.store import workloads as workloads_store
from torchyard.store.database import POOL, open_database, write
from torchyard.store.lock import check_disk, lead
from torchyard.store.sealing import Sealer
from torchyard.web import page

log = logging.getLogger("torchyard")

TICKS = 10
"""Uvicorn ticks ten times a second."""
BASE = "/api/v1"
STREAMING = ("/code", "/files/content")
"""Paths whose bodies pass through and are limited where they are kept."""
ROUTERS = (
    *submissions.routers,
    workloads.router,
    logs.router,
    explain.router,
    checkpoints.router,
    claims.router,
    files.router,
    code.router,
    render.router,
    prune.router,
    org.router,
    projects.router,
    departments.router,
    ui.router,
    *access_keys.routers,
    users.router,
    authorization.router,
    catalogue.router,
)


def build(settings: Settings, engines: Mapping[str, Engine] | None = None) -> FastAPI:
    """The app. Its lifespan takes the data folder, opens everything and lets go of it again; training goes on.

    `engines` by cluster name stand in for those of the settings.
    """
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    doorkeeper = Doorkeeper(ensure_token(settings.token_file), os_user())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.closing = asyncio.Event()
        async with open_yard(settings, engines) as yard:
            app.state.yard = yard
            working = asyncio.create_task(loop.run(yard))
            try:
                yield
            finally:
                app.state.closing.set()
                await _end(working)

    app = FastAPI(
        title="torchyard",
        version=__version__,
        lifespan=lifespan,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.doorkeeper = doorkeeper
    # The gate does the work; this tells readers of the schema.
    bearer = [Depends(HTTPBearer(auto_error=False, description="An access token, or the content of the token file"))]
    for router in ROUTERS:
        app.include_router(router, prefix=BASE, dependencies=bearer, responses=errors.RESPONSES)
    app.include_router(catalogue.storage, prefix="/api", dependencies=bearer, responses=errors.RESPONSES)
    for router in (health.router, exec.router):
        app.include_router(router, prefix=BASE)
    app.include_router(tokens.router, prefix="/api")
    app.include_router(page.router)
    app.mount("/static", StaticFiles(directory=page.STATIC), name="static")
    errors.install(app)
    # The last one added is the outermost.
    app.add_middleware(errors.BodyLimit, streaming=STREAMING)
    app.add_middleware(Gate, doorkeeper=doorkeeper)
    app.add_middleware(errors.Catch)
    return app


@asynccontextmanager
async def open_yard(settings: Settings, engines: Mapping[str, Engine] | None = None) -> AsyncIterator[Yard]:
    """Everything that control needs. Raises Unavailable for a second server on the same data folder."""
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with contextlib.AsyncExitStack() as stack:
        check_disk(settings.data)
        # Whoever made it may have left it open to everybody.
        with contextlib.suppress(PermissionError):
            settings.data.chmod(0o700)
        stack.callback(lead(settings.data).release)
        threads = ThreadPoolExecutor(POOL, "torchyard")
        stack.callback(threads.shutdown, wait=False)
        # Those of asyncio are too few for a small machine: a slow disk under one reader would hold everybody up.
        asyncio.get_running_loop().set_default_executor(threads)
        database = await asyncio.to_thread(open_database, settings.database_file)
        stack.callback(database.dispose)
        attached = dict(engines) if engines is not None else _engines(settings)
        holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        owner = await asyncio.to_thread(_take_over, database, holder)
        for engine in attached.values():
            await engine.open()
            stack.push_async_callback(engine.close)
        yard = Yard(
            settings=settings,
            database=database,
            engines=attached,
            sealer=Sealer(settings.seal_key_file),
            holder=holder,
            owner=actor_of(owner),
        )
        yield yard


def serve(settings: Settings, engines: Mapping[str, Engine] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; what trains goes on. Raises Unavailable when it cannot start.

    `engines` by cluster name stand in for those of the settings.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Its paths would tell the command of every exec.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    asyncio.run(_serve(settings, engines))


async def _serve(settings: Settings, engines: Mapping[str, Engine] | None) -> None:
    async with open_yard(settings, engines) as yard:
        app = build(settings)
        app.state.yard, app.state.closing = yard, asyncio.Event()
        with _listen(settings) as listener:
            config = uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="websockets-sansio",
                timeout_graceful_shutdown=5,
            )
            server = _Server(config, settings, app.state.closing)
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, server.stop)
            working = asyncio.create_task(loop.run(yard))
            working.add_done_callback(lambda _: server.stop())
            try:
                await server.serve([listener])
            finally:
                await _end(working)


class _Server(uvicorn.Server):
    """Uvicorn that says where it listens and lets endless streams end."""

    def __init__(self, config: uvicorn.Config, settings: Settings, closing: asyncio.Event) -> None:
        super().__init__(config)
        self.file = settings.server_file
        self.said = ""
        self.closing = closing

    def stop(self) -> None:
        """End after what is being answered; the second call ends at once."""
        self.force_exit = self.should_exit
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Ours are set already, and end with exit code 0.
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets
        host, port = sockets[0].getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.said = json.dumps({"url": url, "pid": os.getpid(), "started": started_at("self"), "version": __version__})
        announce(self.file, self.said)
        log.info("torchyard %s listens at %s", __version__, url)

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0:
            # Whoever lost the file (a clean-up, a disk that was full) is found again.
            with contextlib.suppress(OSError):
                if not said(self.file, self.said):
                    announce(self.file, self.said)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.closing.set()
        await super().shutdown(sockets)
        self.file.unlink(missing_ok=True)


def announce(path: Path, text: str) -> None:
    """Say where the server is, all at once."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        file.write(text + "\n")
    fresh.replace(path)


def said(path: Path, text: str) -> bool:
    """The file says this and nothing else."""
    try:
        return path.read_bytes() == f"{text}\n".encode()
    except FileNotFoundError:
        return False


def _listen(settings: Settings) -> socket.socket:
    # asyncio turns Nagle's algorithm off only where it sees that the protocol is TCP; else every answer takes 40 ms.
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(listener, settings)
    except OSError as problem:
        listener.close()
        raise Unavailable(
            f"cannot listen on {settings.host} port {settings.port}: {problem.strerror}",
            "set TORCHYARD_PORT to a free port, or leave it out to get one",
        ) from problem
    return listener


def _bind(listener: socket.socket, settings: Settings) -> None:
    """To any port where none is asked for, but rather to that of the last time: pages stay where they were."""
    try:
        listener.bind((settings.host, settings.port or int(settings.port_file.read_text())))
    except (OSError, ValueError, OverflowError):
        listener.bind((settings.host, settings.port))
    settings.port_file.write_text(str(listener.getsockname()[1]))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _engines(settings: Settings) -> dict[str, Engine]:
    # Imported here: whoever brings engines of their own need not load ours.
    from torchyard.engines.local.engine import LocalEngine

    return {"local": LocalEngine(settings)}


def _take_over(database: Database, holder: str) -> User:
    """Whoever had leases before is gone: the lock on the data folder is ours. The answer is its owner."""
    with write(database) as connection:
        workloads_store.release_others(connection, holder)
        projects_store.ensure_default(connection, datetime.now(UTC))
        clusters.ensure_local(connection, datetime.now(UTC))
        return users_store.ensure_owner(connection, os_user(), datetime.now(UTC))
