"""A fake-engine server in a process of its own, and a plain HTTP connection to it."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Crowd:
    """The server and one kept-alive connection."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.until((folder / "server.json").exists)
        where = json.loads((folder / "server.json").read_text())
        self._token = (folder / "token").read_text().strip()
        self._connection = http.client.HTTPConnection(urlsplit(where["url"]).netloc, timeout=60)
        self.cluster = self.get("/api/v1/clusters")[0]["uuid"]

    def _request(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def get(self, path: str) -> Any:
        """JSON of a GET."""
        return self._request("GET", path)

    def post(self, path: str, body: object) -> Any:
        """JSON of a POST."""
        return self._request("POST", path, body)

    def count(self, filter_by: str) -> int:
        """Workloads that pass a filter."""
        return int(self.get(f"/api/v1/workloads/count?filterBy={filter_by}")["count"])

    def until(self, true: Callable[[], bool], timeout: float = 120.0) -> None:
        """Wait for something to become true."""
        end = time.monotonic() + timeout
        while not true():
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("it did not come to that")
            time.sleep(0.1)

    def rss(self) -> float:
        """Bytes of resident memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return float(line.split()[1]) * 1024
        raise SystemExit("the server is gone")

    def cpu(self) -> float:
        """Seconds of processor time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def crowd(devices: int) -> Iterator[Crowd]:
    """A fresh fake server."""
    folder = Path(tempfile.mkdtemp(prefix="torchyard-bench-"))
    env = {**os.environ, "TORCHYARD_DATA": str(folder)}
    argv = [sys.executable, "-m", "bench.fake_server", str(devices)]
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=(folder / "errors").open("wb"))
    try:
        yield Crowd(folder, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
