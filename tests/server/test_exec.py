"""A command beside the ranks, through a WebSocket: bytes both ways, exit codes, terminals, its end with its caller."""

import json
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.server.asking import until
from tests.server.serving import serving
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from torchyard.app import build
from torchyard.settings import Settings

Open = Callable[..., ClientConnection]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exec")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """A server with this machine as its cluster, for all tests of this file."""
    settings = Settings(data=folder / "data", lock_dir=folder / "locks")
    with serving(build(settings)) as address:
        yield address


@pytest.fixture(scope="module")
def token(folder: Path, url: str) -> str:
    return (folder / "data" / "token").read_text().strip()


@pytest.fixture(scope="module")
def http(url: str, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=20) as client:
        yield client


@pytest.fixture(scope="module")
def sleeper(http: httpx.Client, folder: Path) -> Iterator[str]:
    """A workload that runs until it is stopped."""
    spec = {"command": "sleep 600", "workingDir": str(folder)}
    made = http.post("/workloads/trainings", json={"name": "sleeper", "spec": spec})
    assert made.status_code == 202, made.text
    identity = made.json()["workloadId"]
    until(http, identity, "Running")
    yield identity
    http.post(f"/workloads/trainings/{identity}/suspend?grace=0")
    until(http, identity, "Stopped")


@pytest.fixture
def start(url: str, token: str, sleeper: str) -> Open:
    def start(*argv: str, **query: str) -> ClientConnection:
        words = urllib.parse.urlencode([("argv", word) for word in argv] + list(query.items()))
        address = f"{url.replace('http', 'ws')}/api/v1/workloads/{sleeper}/exec?{words}"
        return connect(address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None)

    return start


def outcome(socket: ClientConnection) -> tuple[bytes, bytes, int]:
    """(stdout, stderr, exit code) of a command that ends."""
    said = {1: b"", 2: b""}
    for frame in socket:
        if isinstance(frame, bytes):
            said[frame[0]] += frame[1:]
        else:
            return said[1], said[2], json.loads(frame)["exit"]
    raise AssertionError("it ended without an exit code")


def test_output_and_exit_code(start: Open) -> None:
    with start("sh", "-c", "echo out; echo err >&2; exit 3") as socket:
        assert outcome(socket) == (b"out\n", b"err\n", 3)


def test_input_goes_in_until_its_end(start: Open) -> None:
    data = bytes(range(256)) * 1000
    with start("cat") as socket:
        socket.send(b"\0" + data)
        socket.send(b"\0")
        socket.send(b"\0end")
        socket.send(json.dumps({"eof": True}))
        assert outcome(socket) == (data + b"end", b"", 0)


def test_a_terminal_has_the_size_that_was_asked_for(start: Open) -> None:
    with start("sh", "-c", "stty size; read x; stty size", tty="true", rows="11", columns="55") as socket:
        assert socket.recv() == b"\x0111 55\r\n"
        socket.send(json.dumps({"resize": [12, 66]}))
        socket.send(b"\0\n")
        said, _, code = outcome(socket)
        assert b"12 66" in said and code == 0


@pytest.mark.parametrize("frame", [b"\x07oops", "no json", '{"resize": [0, 5]}', '{"resize": [99999, 5]}', "[]", "{}"])
def test_a_bad_frame_ends_it_with_a_sentence(start: Open, frame: str | bytes) -> None:
    with start("cat") as socket:
        socket.send(frame)
        assert "frame" in json.loads(socket.recv())["error"]
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


def test_the_command_ends_with_its_caller(start: Open, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with start("sh", "-c", f"trap 'touch {gone}' HUP; echo on; sleep 600 & wait") as socket:
        assert socket.recv() == b"\x01on\n"
    with start("sh", "-c", f"until [ -e {gone} ]; do sleep 0.05; done") as socket:
        assert outcome(socket)[2] == 0


BAD: list[tuple[tuple[str, ...], dict[str, str], int]] = [
    ((), {}, 400),
    (("sh",), {"replica": "worker-7"}, 404),
    (("sh",), {"rows": "0"}, 400),
    (("sh",), {"tty": "perhaps"}, 400),
]


@pytest.mark.parametrize(("argv", "query", "status"), BAD)
def test_a_bad_request_is_refused_before_it_opens(
    start: Open, argv: tuple[str, ...], query: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        start(*argv, **query)
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["code"] == status


def test_what_does_not_run_cannot_be_entered(http: httpx.Client, url: str, token: str) -> None:
    made = http.post("/workloads/trainings", json={"spec": {"command": "true", "workingDir": "/"}}).json()["workloadId"]
    until(http, made, "Completed")
    for one, status in ((made, 409), ("no-such", 404)):
        address = f"{url.replace('http', 'ws')}/api/v1/workloads/{one}/exec?argv=sh"
        with pytest.raises(InvalidStatus) as refused:
            connect(address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None)
        assert refused.value.response.status_code == status
