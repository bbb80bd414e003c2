"""Submitting over HTTP: Run:ai's shapes, ids for names, one clear error for what is wrong, nothing made by it."""

import uuid
from typing import Any

import httpx
import pytest
from tests.server.asking import Json, running, submission, submit, until


def count(http: httpx.Client) -> int:
    return int(http.get("/workloads/count").json()["count"])


def test_the_answer_has_the_shape_of_runai(http: httpx.Client) -> None:
    cluster = http.get("/clusters").json()[0]["uuid"]
    answer = http.post("/workloads/distributed", json=submission() | {"projectId": "1", "clusterId": cluster})
    said = answer.json()
    assert answer.status_code == 202
    assert said["name"] == said["requestedName"] == "ddp"
    assert (said["projectId"], said["clusterId"], said["departmentId"]) == ("1", cluster, "1")
    assert str(uuid.UUID(said["workloadId"])) == said["workloadId"]
    assert said["actualPhase"] == "Creating" and said["desiredPhase"] == "Running" and said["deletedAt"] is None
    assert said["createdAt"].endswith("Z") and said["createdBy"]
    assert said["spec"]["numWorkers"] == 1 and said["spec"]["command"] == "bash run.sh"
    assert "2 replicas" in said["sentence"]
    assert isinstance(said["findings"], list)


def test_numbers_for_ids_and_nulls_are_taken(http: httpx.Client) -> None:
    body = submission(slotsPerWorker=None, sshAuthMountPath=None) | {"projectId": 1, "masterSpec": None}
    assert http.post("/workloads/distributed", json=body).status_code == 202


def test_a_name_is_given_where_none_is(http: httpx.Client) -> None:
    assert submit(http, None)["name"] == "train-1"
    assert submit(http, None)["name"] == "train-2"


def test_a_name_can_be_a_prefix(http: httpx.Client) -> None:
    body = submission("sweep") | {"useGivenNameAsPrefix": True}
    answer = http.post("/workloads/distributed", json=body).json()
    assert answer["requestedName"] == "sweep" and answer["name"] == "sweep-1"


def test_the_same_key_makes_one_workload(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "abc"}
    ids = {http.post("/workloads/distributed", json=submission(), headers=headers).json()["workloadId"] for _ in "123"}
    assert len(ids) == 1 and count(http) == 1


def test_a_taken_name_is_a_conflict(http: httpx.Client) -> None:
    submit(http)
    answer = http.post("/workloads/distributed", json=submission(command="true"), headers={"Idempotency-Key": "other"})
    assert answer.status_code == 409 and "ddp" in answer.json()["message"]


def test_each_kind_answers_on_its_own_routes(http: httpx.Client) -> None:
    training = http.post("/workloads/trainings", json={"name": "one", "spec": {"command": "true"}}).json()
    assert http.get(f"/workloads/trainings/{training['workloadId']}").json()["name"] == "one"
    answer = http.get(f"/workloads/distributed/{training['workloadId']}")
    assert answer.status_code == 404 and "training" in answer.json()["details"]
    assert http.delete(f"/workloads/workspaces/{training['workloadId']}").status_code == 404


BAD: list[tuple[Json, str]] = [
    ({"spec": {"comand": "true"}}, "spec.comand: no such field; did you mean command?"),
    ({"spec": {"command": ["a"]}}, "spec.command"),
    ({"spec": {"command": ""}}, "spec.command"),
    ({"spec": {"command": "true", "backoffLimit": True}}, "spec.backoffLimit: true is not a whole number"),
    ({"name": "Bad_Name", "spec": {"command": "true"}}, "name"),
    ({"name": "x" * 10_000, "spec": {"command": "true"}}, "name"),
    ({}, "spec: is missing"),
    ({"spec": {"command": "true", "compute": {"cpuMemoryRequest": "ten"}}}, "spec.compute.cpuMemoryRequest"),
    ({"spec": {"command": "true"}, "projectId": "77"}, "there is no project with id '77'"),
    ({"spec": {"command": "true"}, "clusterId": "zz"}, "there is no cluster with id 'zz'"),
    ({"spec": {"command": "true"}, "environment": {"A=B": "1"}}, "environment"),
    ({"spec": {"command": "true\0"}}, "NUL"),
    ({"spec": {"command": "true"}, "masterSpec": {}, "masterSpecSameAsWorker": True}, "masterSpec"),
    ({"spec": {"command": "true", "compute": {"gpuDevicesRequest": 100_000}}}, "device"),
]


@pytest.mark.parametrize(("body", "says"), BAD, ids=[says[:20] for _, says in BAD])
def test_what_is_wrong_is_one_clear_error_and_nothing_is_made(quiet: httpx.Client, body: Json, says: str) -> None:
    answer = quiet.post("/workloads/distributed", json=body)
    assert answer.status_code == 400, answer.text
    said: dict[str, Any] = answer.json()
    assert said["code"] == 400 and says in said["message"]
    assert len(answer.content) < 5000
    assert count(quiet) == 0


def test_secrets_are_never_shown(http: httpx.Client) -> None:
    variables = [{"name": "WANDB_API_KEY", "value": "hunter2"}, {"name": "LR", "value": "0.1"}]
    body = submission(environmentVariables=variables) | {"environment": {"HF_TOKEN": "hunter3"}}
    body["torchyard"] = {"notify": {"webhook": "http://127.0.0.1:9/hook?token=hunter4"}}
    made = http.post("/workloads/distributed", json=body)
    pages = [made.text]
    identity = made.json()["workloadId"]
    for path in ("", "/pods", "/attempts", "/events", "/explain"):
        pages.append(http.get(f"/workloads/{identity}{path}").text)
    pages.append(http.get(f"/workloads/distributed/{identity}").text)
    assert not any("hunter" in page for page in pages)
    assert '"0.1"' in pages[-1] and "(sealed)" in pages[-1] and "http://127.0.0.1:9/hook?***" in pages[-1]


def test_stop_resume_delete(http: httpx.Client) -> None:
    identity = running(http)["id"]
    base = f"/workloads/distributed/{identity}"
    answer = http.post(f"{base}/suspend?grace=1")
    assert answer.status_code == 202 and answer.json() == {"code": 202, "message": "ddp is being stopped"}
    assert until(http, identity, "Stopped")["exitCode"] == 130
    assert http.post(f"{base}/suspend").status_code == 409
    assert http.post(f"{base}/resume").status_code == 202
    assert until(http, identity, "Running")["attempt"] == 2
    assert http.delete(base).status_code == 202
    assert submit(http)["name"] == "ddp"


@pytest.mark.parametrize(
    "path",
    ["", "/pods", "/attempts", "/events", "/history", "/progress", "/stream", "/logs", "/explain", "/checkpoints"],
)
def test_an_unknown_workload_is_404_everywhere(quiet: httpx.Client, path: str) -> None:
    answer = quiet.get(f"/workloads/no-such{path}")
    assert answer.status_code == 404 and answer.json()["code"] == 404


def test_render_shows_the_plan_and_makes_nothing(http: httpx.Client) -> None:
    body = submission(environmentVariables=[{"name": "LR", "value": "0.1"}]) | {"kind": "distributed"}
    plan = http.post("/render", json=body).json()
    assert [replica["name"] for replica in plan["replicas"]] == ["master-0", "worker-0"]
    assert plan["ranks"] == 2 and plan["replicas"][1]["environment"]["LR"] == "0.1"
    assert count(http) == 0
