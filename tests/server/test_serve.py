"""The server as a process: where it says it is, what a second one says, and how it ends without ending what trains."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.asking import events, until

SERVE = (
    "import os, sys\n"
    "from torchyard.app import serve\n"
    "from torchyard.domain.errors import TorchyardError\n"
    "from torchyard.settings import Settings\n"
    "try:\n"
    "    serve(Settings.from_environment(os.environ))\n"
    "except TorchyardError as error:\n"
    "    sys.exit(f'{error.message} ({error.details})')\n"
)
LIVES = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"


class Place:
    """A data folder and the servers that a test starts on it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.env = os.environ | {"TORCHYARD_DATA": str(self.data), "TORCHYARD_LOCK_DIR": str(folder / "locks")}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SERVE]
        server = subprocess.Popen(command, env=self.env | env, stderr=subprocess.PIPE, text=True)
        self.started.append(server)
        return server

    def listening(self, server: subprocess.Popen[str]) -> dict[str, Any]:
        """What server.json says, as soon as this server wrote it."""
        file, tick = self.data / "server.json", threading.Event()
        for _ in range(6000):
            with contextlib.suppress(FileNotFoundError, ValueError):
                if (said := json.loads(file.read_text()))["pid"] == server.pid:
                    return dict(said)
            assert server.poll() is None, server.communicate()[1]
            tick.wait(0.01)
        raise AssertionError("it never listened")

    def client(self, server: subprocess.Popen[str]) -> httpx.Client:
        url = self.listening(server)["url"]
        token = (self.data / "token").read_text().strip()
        return httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for server in made.started:
        if server.poll() is None:
            server.kill()
        server.communicate()


def test_it_says_where_it_is_and_ends_cleanly(place: Place) -> None:
    server = place.start()
    said = place.listening(server)
    assert said.keys() == {"url", "pid", "started", "version"} and said["url"].startswith("http://127.0.0.1:")
    assert httpx.get(f"{said['url']}/api/v1/health").json()["version"] == said["version"]
    for name in ("server.json", "token", "seal.key", "server.lock"):
        assert stat.S_IMODE((place.data / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE(place.data.stat().st_mode) == 0o700
    server.send_signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert not (place.data / "server.json").exists()


def test_who_loses_the_file_that_says_where_it_is_finds_it_again(place: Place) -> None:
    server = place.start()
    said = place.listening(server)
    for harm in (Path.unlink, lambda file: file.write_text('{"url": ')):
        harm(place.data / "server.json")
        assert place.listening(server) == said


def test_a_second_server_names_the_first(place: Place) -> None:
    first = place.start()
    url = place.listening(first)["url"]
    second = place.start()
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert str(first.pid) in said and url in said and "Traceback" not in said
    assert httpx.get(f"{url}/api/v1/health").status_code == 200


def test_a_taken_port_is_a_sentence(place: Place, tmp_path: Path) -> None:
    first = place.start()
    port = place.listening(first)["url"].rpartition(":")[2]
    second = place.start(TORCHYARD_PORT=port, TORCHYARD_DATA=str(tmp_path / "other"))
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1 and f"port {port}" in said and "Traceback" not in said


def test_answers_are_not_held_back(place: Place) -> None:
    """Forty milliseconds for each answer is what Nagle's algorithm and delayed acknowledgements cost together."""
    with place.client(place.start()) as http:
        http.get("/health")
        times = sorted(http.get("/health").elapsed.total_seconds() for _ in range(60))
    assert times[15] < 0.035


def test_what_trains_goes_on_and_the_next_server_finds_it(place: Place, tmp_path: Path) -> None:
    first = place.start()
    spec = {"command": f'{sys.executable} -c "{LIVES}"', "workingDir": str(tmp_path)}
    with place.client(first) as http:
        made = http.post("/workloads/trainings", json={"name": "stays", "spec": spec}).json()["workloadId"]
        until(http, made, "Running")
        stream = events(http, f"/workloads/{made}/stream")
        next(stream)
        first.send_signal(signal.SIGTERM)
        # An endless stream does not hold it up: it ends for its reader.
        assert all(event in ("workload", "event") for event, _, _ in stream)
        assert first.wait(10) == 0
    second = place.start()
    with place.client(second) as http:
        row = http.get(f"/workloads/{made}").json()
        assert (row["phase"], row["attempt"]) == ("Running", 1)
        os.kill(int((tmp_path / "pid").read_text()), 0)
        http.post(f"/workloads/trainings/{made}/suspend?grace=1")
        assert until(http, made, "Stopped")["attempt"] == 1
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
