"""Lists, details and streams of workloads in the Run:ai dialect."""

import httpx
import pytest
from tests.server.asking import events, running, submit, until

from torchyard.engines.fake import FakeWorld

REQUIRED = {
    "id", "name", "type", "source", "priority", "priorityClassName", "clusterId", "projectName", "projectId",
    "departmentName", "departmentId", "namespace", "createdAt", "phase", "conditions", "k8sPhase", "tenantId",
    "runningPods", "phaseUpdatedAt", "k8sPhaseUpdatedAt", "updatedAt", "deletedAt", "category",
}  # fmt: skip


def test_a_row_has_all_that_runai_requires(http: httpx.Client) -> None:
    row = running(http)
    (listed,) = http.get("/workloads").json()["workloads"]
    assert set(listed) >= REQUIRED | {"phaseMessage", "progress", "attempt", "devices", "replicas"}
    assert (listed["name"], listed["type"], listed["phase"], listed["runningPods"]) == (
        "ddp",
        "distributed",
        "Running",
        2,
    )
    assert listed["attempt"] == 1 and listed["replicas"] == 2
    assert {"spec", "attempts", "findings", "exitCode"} <= set(row) and row["exitCode"] is None


def test_pages_sorting_filters_and_search(http: httpx.Client) -> None:
    for name in ("a1", "a2", "b1"):
        submit(http, name)

    def names(query: str) -> list[str]:
        answer = http.get(f"/workloads{query}")
        assert answer.status_code == 200, answer.text
        return [row["name"] for row in answer.json()["workloads"]]

    assert names("?") == names("") == ["b1", "a2", "a1"]
    assert names("?sortBy=name&sortOrder=asc") == ["a1", "a2", "b1"]
    assert names("?limit=2&offset=1&sortBy=name&sortOrder=desc") == ["a2", "a1"]
    assert names("?filterBy=name%3D%3Da1") == ["a1"]
    assert names("?filterBy=name%3D%5Ea%2Cname!%3Da1") == ["a2"]
    assert names("?filterBy=name%3D%5Ea&filterBy=name!%3Da1") == ["a2"]
    assert names("?filterBy=projectId==1") == ["b1", "a2", "a1"] and names("?filterBy=projectId==2") == []
    assert names("?filterBy=createdAt>=2020-01-01T00:00:00") == ["b1", "a2", "a1"]
    assert names("?search=B") == ["b1"]
    assert names("?deleted=true") == []
    first = http.get("/workloads?limit=2").json()
    assert first["next"] == 2 and http.get("/workloads?limit=2&offset=2").json()["next"] is None
    assert http.get("/workloads/count?filterBy=name=^a").json() == {"count": 2}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=x",
        "offset=-1",
        "sortBy=nonsense",
        "sortOrder=up",
        "filterBy=nonsense==1",
        "filterBy=x",
        "deleted=perhaps",
    ],
)
def test_a_bad_query_is_400_in_our_shape(quiet: httpx.Client, query: str) -> None:
    answer = quiet.get(f"/workloads?{query}")
    assert answer.status_code == 400 and answer.json()["code"] == 400, answer.text


def test_pods_attempts_events_and_history(http: httpx.Client) -> None:
    identity = running(http)["id"]
    pods = http.get(f"/workloads/{identity}/pods").json()["pods"]
    assert [(pod["name"], pod["k8sPhase"]) for pod in pods] == [
        ("ddp-master-0", "Running"),
        ("ddp-worker-0", "Running"),
    ]
    assert len({pod["id"] for pod in pods}) == 2 and all(pod["workloadId"] == identity for pod in pods)
    (attempt,) = http.get(f"/workloads/{identity}/attempts").json()["attempts"]
    assert attempt["number"] == 1 and [r["state"] for r in attempt["replicas"]] == ["running", "running"]
    newest = http.get(f"/workloads/{identity}/events").json()["events"]
    oldest = http.get(f"/workloads/{identity}/events?sortOrder=asc&limit=1").json()
    assert newest[-1] == oldest["events"][0] and oldest["next"] == 1
    assert newest[0]["involvedObject"]["uid"] == identity
    records = http.get(f"/workloads/{identity}/history").json()["records"]
    phases = [r["spec"]["phaseUpdate"]["phase"] for r in records if r["meta"]["type"] == "PhaseUpdate"]
    assert phases[0] == "Running" and phases[-1] == "Creating"


def test_a_stream_tells_every_event_and_ends_with_the_workload(http: httpx.Client) -> None:
    identity = running(http)["id"]
    seen: list[tuple[str, str | None]] = []
    for event, cursor, data in events(http, f"/workloads/{identity}/stream"):
        seen.append((event, cursor))
        if event == "workload" and data["phase"] == "Running":
            http.post(f"/workloads/distributed/{identity}/suspend")
            break
    rest = list(events(http, f"/workloads/{identity}/stream", seen[-1][1]))
    assert rest[-1][0] == "end" and rest[-1][2] == {"phase": "Stopped", "exitCode": 130}
    seen += [(event, cursor) for event, cursor, _ in rest]
    told = [cursor for event, cursor in seen if event == "event"]
    assert told == [str(n) for n in range(1, len(told) + 1)]
    assert len(told) == len(http.get(f"/workloads/{identity}/events?limit=500").json()["events"])


def test_the_stream_of_all_begins_with_the_page_and_goes_on(http: httpx.Client) -> None:
    old = submit(http, "old")["workloadId"]
    until(http, old, "Running")
    names = []
    for event, _, data in events(http, "/workloads/stream"):
        assert event == "workload"
        names.append(data["name"])
        if names == ["old"]:
            submit(http, "new")
        if "new" in names:
            break
    assert names[0] == "old"


def test_a_stream_that_was_left_leaves_nothing_behind(http: httpx.Client, url: str) -> None:
    identity = running(http)["id"]
    for _ in range(20):
        next(events(http, f"/workloads/{identity}/stream"))
    # The server still answers at once, and ends at once when the fixture closes it: see serving().
    assert http.get("/me").status_code == 200


def test_logs_have_cursors(http: httpx.Client, world: FakeWorld) -> None:
    identity = running(http)["id"]
    for number in range(6):
        world.say(f"{identity}-1", ("master-0", "worker-0")[number % 2], f"line {number}", rank=number % 2)
    lines = list(events(http, f"/workloads/{identity}/logs"))
    assert [data["text"] for _, _, data in lines] == [f"line {number}" for number in range(6)]
    assert all(event == "line" for event, _, _ in lines)
    assert set(lines[0][2]) == {"attempt", "replica", "rank", "kind", "at", "text"}
    for seen in range(6):
        assert list(events(http, f"/workloads/{identity}/logs", lines[seen][1])) == lines[seen + 1 :]

    def texts(query: str) -> list[str]:
        return [data["text"] for _, _, data in events(http, f"/workloads/{identity}/logs?{query}")]

    assert texts("tail=1") == ["line 5"]
    assert texts("rank=1") == texts("replica=worker-0") == ["line 1", "line 3", "line 5"]
    assert texts("since=2099-01-01T00:00:00Z") == [] and len(texts("since=5m")) == len(texts("attempt=1")) == 6
    refused = http.get(f"/workloads/{identity}/logs", headers={"Last-Event-ID": "nonsense"})
    assert refused.status_code == 400 and "cursor" in refused.json()["message"]


def test_a_bad_log_query_is_400(http: httpx.Client) -> None:
    identity = submit(http)["workloadId"]
    for query in ("since=soon", "tail=-1", "rank=x", "follow=maybe", "attempt=-1"):
        assert http.get(f"/workloads/{identity}/logs?{query}").status_code == 400, query


def test_following_ends_with_the_workload(http: httpx.Client, world: FakeWorld) -> None:
    identity = running(http)["id"]
    world.say(f"{identity}-1", "worker-0", "hello")
    seen = []
    for event, _, data in events(http, f"/workloads/{identity}/logs?follow=true"):
        if not seen:
            http.post(f"/workloads/distributed/{identity}/suspend")
        seen.append((event, data))
    assert seen[-1] == ("end", {"phase": "Stopped", "exitCode": 130})


def test_explain_and_progress(http: httpx.Client) -> None:
    identity = running(http)["id"]
    verdict = http.get(f"/workloads/{identity}/explain").json()
    assert set(verdict) == {"phase", "sentence", "cause", "fault", "evidence", "nextStep"}
    assert verdict["phase"] == "Running" and verdict["sentence"]
    assert set(http.get(f"/workloads/{identity}/progress").json()) == {"progress"}
