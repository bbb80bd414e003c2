"""Runs an ASGI app on a real socket in a thread of its own, for tests."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The URL of the app while it is served."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, ws="websockets-sansio", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        over = threading.Event()

        def run() -> None:
            asyncio.run(server.serve([listener]))
            over.set()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            while not server.started:
                assert not over.wait(0.01), "the app did not start"
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
