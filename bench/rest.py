"""A server at rest with 1000 finished workloads."""

import time

from bench.crowd import Crowd, crowd
from bench.figure import Figure
from bench.thousand import COUNT, submit

SECONDS = 20.0


def measure() -> list[Figure]:
    """Processor time over a while in which nobody asks for anything."""
    with crowd(devices=2 * COUNT) as server:
        for number in range(COUNT):
            submit(server, number)
        server.until(lambda: server.count("phase==Running") == COUNT)
        ids = [row["id"] for offset in range(0, COUNT, 500) for row in page(server, offset)]
        for workload_id in ids:
            server.post(f"/api/v1/workloads/trainings/{workload_id}/suspend", {})
        server.until(lambda: server.count("phase==Stopped") == COUNT)
        time.sleep(2.0)
        before = server.cpu()
        time.sleep(SECONDS)
        share = (server.cpu() - before) / SECONDS * 100
    return [
        Figure(
            what="server at rest with 1000 finished workloads",
            must="< 2 % of a core",
            stretch="",
            measured=f"{share:.2f} %",
            met=share < 2,
        )
    ]


def page(server: Crowd, offset: int) -> list[dict[str, str]]:
    """Rows of one page."""
    rows: list[dict[str, str]] = server.get(f"/api/v1/workloads?limit=500&offset={offset}")["workloads"]
    return rows
