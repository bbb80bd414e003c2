"""What the tests of the API say and hear: submissions, server-sent events, waiting for a phase."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

Json = dict[str, Any]


def submission(name: str | None = "ddp", **spec: Any) -> Json:
    body: Json = {"spec": {"command": "bash run.sh", "numWorkers": 1, "distributedFramework": "PyTorch"} | spec}
    return body if name is None else {"name": name} | body


def submit(http: httpx.Client, name: str | None = "ddp", **spec: Any) -> Json:
    answer = http.post("/workloads/distributed", json=submission(name, **spec))
    assert answer.status_code == 202, answer.text
    return answer.json()


def events(http: httpx.Client, path: str, last: str | None = None) -> Iterator[tuple[str, str | None, Json]]:
    """(event, id, data) of a stream until it ends; leaving the loop leaves the stream."""
    headers = {"Last-Event-ID": last} if last is not None else {}
    with http.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif "data" in fields:
                yield fields["event"], fields.get("id"), json.loads(fields["data"])
                fields = {}
            else:
                fields = {}


def until(http: httpx.Client, workload_id: str, *phases: str) -> Json:
    """The row of the workload as soon as it is in one of these phases."""
    seen = []
    for event, _, data in events(http, f"/workloads/{workload_id}/stream"):
        seen.append((event, data.get("phase")))
        if data.get("phase") in phases and event in ("workload", "end"):
            return http.get(f"/workloads/{workload_id}").json()
    raise AssertionError(f"never {phases}: {seen}")


def running(http: httpx.Client, name: str = "ddp", **spec: Any) -> Json:
    return until(http, submit(http, name, **spec)["workloadId"], "Running")
