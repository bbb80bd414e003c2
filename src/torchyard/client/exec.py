"""A command run inside a replica, over a WebSocket. Knows bytes and the frames of the API; no terminal."""

import json
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchyard.client.http import Server, quote, target
from torchyard.domain.errors import Unavailable

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

STDIN, STDOUT, STDERR = b"\x00", b"\x01", b"\x02"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecRequest:
    """What to run and where. Without a replica the first one is meant."""

    argv: tuple[str, ...]
    replica: str | None = None
    tty: bool = False
    rows: int = 24
    columns: int = 80


@dataclass(frozen=True, slots=True)
class Session:
    """A running command."""

    socket: "ClientConnection"

    def send(self, data: bytes) -> None:
        """Bytes for its stdin."""
        self._tell(STDIN + data)

    def end(self) -> None:
        """No more stdin."""
        self._tell(json.dumps({"eof": True}))

    def resize(self, rows: int, columns: int) -> None:
        """The terminal has another size."""
        self._tell(json.dumps({"resize": [rows, columns]}))

    def _tell(self, message: str | bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        # A command that has ended already hears nothing more; what it said is still to be read.
        with suppress(ConnectionClosed):
            self.socket.send(message)

    def wait(self, write: Callable[[int, bytes], None]) -> int:
        """Hand out what it writes (1 stdout, 2 stderr) until it ends; answers its exit code."""
        for frame in self._frames():
            if isinstance(frame, bytes):
                write(frame[0], frame[1:])
                continue
            told = json.loads(frame)
            if "exit" in told:
                return int(told["exit"])
            if "error" in told:
                raise Unavailable(str(told["error"]))
        raise Unavailable("the connection ended before the command did", "see `torchyard describe`")

    def _frames(self) -> Iterator[str | bytes]:
        from websockets.exceptions import ConnectionClosedError

        try:
            yield from self.socket
        except ConnectionClosedError as error:
            why = error.rcvd.reason if error.rcvd and error.rcvd.reason else "the connection to the replica broke"
            raise Unavailable(why, "see `torchyard describe`") from None


@contextmanager
def open_exec(server: Server, identity: str, request: ExecRequest) -> Iterator[Session]:
    """Start a command in a replica. Raises as any request does."""
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    query = {"replica": request.replica, "tty": request.tty, "rows": request.rows, "columns": request.columns}
    path = target(f"/workloads/{quote(identity)}/exec", query)
    words = "".join(f"&argv={urllib.parse.quote(word, safe='')}" for word in request.argv)
    base = server.address.url.rstrip("/")
    url = "ws" + base.removeprefix("http") + path + words
    headers = server.authorization()
    try:
        socket = connect(url, additional_headers=headers, max_size=None, compression=None, proxy=None)
    except InvalidStatus as error:
        raise server.refused(error.response.status_code, bytes(error.response.body or b"")) from None
    except OSError as error:
        raise Unavailable(f"no torchyard server answers at {base} ({error})", "see `torchyard server status`") from None
    with socket:
        yield Session(socket)
