"""Ports of a replica at this machine: each connection is carried by a small program beside the ranks. No terminal."""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from torchyard.client.exec import STDERR, ExecRequest, Session, open_exec
from torchyard.client.http import Server
from torchyard.domain.errors import Invalid, TorchyardError, Unavailable

PIECE = 65536
MOST = 65535
RELAY = f"""
import os, socket, sys, threading
try:
    peer = socket.create_connection(("localhost", int(sys.argv[1])), 10)
except OSError as error:
    sys.exit(str(error))
peer.settimeout(None)
def send():
    while data := os.read(0, {PIECE}):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := peer.recv({PIECE}):
    while data:
        data = data[os.write(1, data):]
"""
"""Runs beside the ranks, so that `localhost` is theirs. Replicas have Python 3.9 or newer; the keeper needs it too."""


@dataclass(frozen=True, slots=True)
class Ports:
    """A port here (0: a free one) and the one in the replica that it leads to."""

    local: int
    remote: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Where connections go. `server` opens a connection of its own for each of them; `say` is told what went wrong."""

    server: Callable[[], Server]
    workload_id: str
    replica: str | None
    port: int
    say: Callable[[str], None]

    def request(self) -> ExecRequest:
        """The program that carries one connection."""
        return ExecRequest(argv=("python3", "-c", RELAY, str(self.port)), replica=self.replica)


def parse(text: str) -> Ports:
    """`8080:80`, or `6006` for the same number on both sides. Raises Invalid."""
    here, _, there = text.partition(":")
    try:
        ports = Ports(int(here), int(there or here))
    except ValueError:
        ports = Ports(-1, -1)
    if not (0 <= ports.local <= MOST and 1 <= ports.remote <= MOST):
        raise Invalid(f"{text[:40]!r} is no pair of ports", "write LOCAL:REMOTE, such as --port 6006:6006")
    return ports


def listen(address: str, port: int) -> socket.socket:
    """Listen here. Raises Invalid (no such address), Unavailable (taken)."""
    try:
        family = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][0]
    except OSError:
        raise Invalid(f"{address[:80]!r} is no address of this machine", "leave --address out for localhost") from None
    try:
        return socket.create_server((address, port), family=family)
    except OSError as problem:
        raise Unavailable(
            f"cannot listen on {address} port {port}: {problem.strerror or problem}", "choose another local port"
        ) from None


def serve(listener: socket.socket, forward: Forward) -> None:
    """Carry every connection until the listener is closed."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_carry, args=(connection, forward), daemon=True).start()


def _carry(connection: socket.socket, forward: Forward) -> None:
    told = bytearray()

    def deliver(stream: int, data: bytes) -> None:
        if stream == STDERR[0]:
            told.extend(data)
            return
        # Whoever asked may have left; the program beside the ranks ends with its own peer.
        with contextlib.suppress(OSError):
            connection.sendall(data)

    try:
        with (
            connection,
            forward.server() as server,
            open_exec(server, forward.workload_id, forward.request()) as inside,
        ):
            threading.Thread(target=_feed, args=(connection, inside), daemon=True).start()
            try:
                code = inside.wait(deliver)
            finally:
                # Closing alone would wait for the thread that reads.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        if code:
            reason = told.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {code}"
            forward.say(f"port {forward.port} of the replica: {reason}")
    except TorchyardError as error:
        forward.say(error.message)


def _feed(connection: socket.socket, inside: Session) -> None:
    with contextlib.suppress(OSError):
        while data := connection.recv(PIECE):
            inside.send(data)
    inside.end()
