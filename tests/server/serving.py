"""Runs an ASGI app on a real socket in a thread of its own, for tests."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The URL of the app while it is served."""
    config = uvicorn.Config(app, port=0, log_config=None, ws="websockets-sansio", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    over = threading.Event()

    def run() -> None:
        asyncio.run(server.serve())
        over.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while not server.started:
            assert not over.wait(0.01), "the app did not start"
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
