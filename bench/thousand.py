"""1000 active workloads on the fake engine, SQLite: latency of list and submit, memory of the server."""

from functools import partial

from bench.crowd import Crowd, crowd
from bench.figure import Figure, percentile, seconds

COUNT = 1000


def measure() -> list[Figure]:
    """Submit a thousand, then list pages of fifty."""
    with crowd(devices=2 * COUNT) as server:
        submits = [seconds(partial(submit, server, number)) for number in range(COUNT)]
        server.until(lambda: server.count("phase==Running") == COUNT)
        lists = [seconds(lambda: server.get("/api/v1/workloads?limit=50")) for _ in range(200)]
        memory = server.rss() / 1e6
    p50, p95 = percentile(lists, 0.5) * 1e3, percentile(submits, 0.95) * 1e3
    return [
        Figure(
            what="1000 active workloads on the fake engine, SQLite: list of 50 p50 / submit p95 / server RSS",
            must="15 ms / 100 ms / 250 MB",
            stretch="5 / 50 / 150",
            measured=f"{p50:.1f} ms / {p95:.0f} ms / {memory:.0f} MB",
            met=p50 <= 15 and p95 <= 100 and memory <= 250,
        )
    ]


def submit(server: Crowd, number: int) -> None:
    """One workload of one replica with one device."""
    server.post(
        "/api/v1/workloads/trainings",
        {
            "name": f"w{number}",
            "projectId": "1",
            "clusterId": server.cluster,
            "spec": {"command": "train", "compute": {"gpuDevicesRequest": 1}},
        },
    )
