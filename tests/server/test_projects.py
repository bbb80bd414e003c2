"""Projects and departments: made, found, given quotas that fit, deleted when nothing is left in them."""

from typing import Any

import httpx
import pytest
from tests.server.asking import running, submission, until
from tests.server.people import DEPARTMENT, VIEWER, create, grant, person

from torchyard.settings import Settings
from torchyard.store.database import open_database, read
from torchyard.store.tables import audit

PROJECTS, DEPARTMENTS = "/org-unit/projects", "/org-unit/departments"
Json = dict[str, Any]


def quota(deserved: int | None, limit: int | None = None) -> list[Json]:
    return [{"nodePool": {"id": "1", "name": "default"}, "gpu": {"deserved": deserved, "limit": limit}}]


def make(http: httpx.Client, name: str, path: str = PROJECTS, **more: Any) -> Json:
    made = http.post(path, json={"name": name} | more)
    assert made.status_code == 201, made.text
    return dict(made.json())


def refused(answer: httpx.Response, status: int, *words: str) -> None:
    told = answer.json()
    assert answer.status_code == status == told["code"], answer.text
    assert told["details"], "an error says what to do"
    for word in words:
        assert word in answer.text, answer.text


def test_the_default_project_and_department_are_there_and_stay(http: httpx.Client) -> None:
    (project,) = http.get(PROJECTS).json()["projects"]
    (department,) = http.get(DEPARTMENTS).json()["departments"]
    assert (project["id"], project["name"], project["parentId"]) == ("1", "default", department["id"])
    assert project["totalResources"]["gpuQuota"] is None and project["status"]["phase"] == "Ready"
    refused(http.delete(f"{PROJECTS}/1"), 409, "default project stays")
    refused(http.delete(f"{DEPARTMENTS}/1"), 409, "default department stays")


def test_a_project_is_made_shown_changed_and_deleted(http: httpx.Client) -> None:
    made = make(http, "vision", resources=quota(6), description="pictures", requestedNamespace="runai-vision")
    assert made == http.get(f"{PROJECTS}/{made['id']}").json()
    assert made["id"].isdigit() and made["description"] == "pictures"
    assert made["status"]["namespace"] == made["requestedNamespace"] == "runai-vision"
    assert made["totalResources"]["gpuQuota"] == made["resources"][0]["gpu"]["deserved"] == 6
    path = f"{PROJECTS}/{made['id']}"
    put = http.put(path, json={"description": "films", "resources": quota(4)})
    assert put.status_code == 200 and put.json()["description"] == "films"
    assert http.get(path).json()["totalResources"]["gpuQuota"] == 4
    assert http.put(f"{path}/resources", json=quota(None)).json()["totalResources"]["gpuQuota"] is None
    assert http.patch(f"{path}/resources", json=quota(3)).json()["totalResources"]["gpuQuota"] == 3
    unchanged = http.patch(f"{path}/resources", json=[{"nodePool": {"id": "1"}}])
    assert unchanged.json()["totalResources"]["gpuQuota"] == 3 and unchanged.json()["description"] == "films"
    assert http.delete(path).status_code == 204
    refused(http.get(path), 404)
    refused(http.delete(path), 404)
    assert make(http, "vision")["id"] != made["id"], "an id is never given again"


@pytest.mark.parametrize("change", [{"name": "vision"}, {"name": "other", "requestedNamespace": "vision"}])
def test_a_taken_name_is_refused(http: httpx.Client, change: Json) -> None:
    make(http, "vision")
    refused(http.post(PROJECTS, json=change), 409, "vision", "already")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Vision"}, "name"),
        ({"name": "-x"}, "name"),
        ({"name": "../x"}, "name"),
        ({"name": "v" * 64}, "name"),
        ({"requestedNamespace": "A b"}, "requestedNamespace"),
        ({"clusterId": "nowhere"}, "clusterId"),
        ({"parentId": "77"}, "parentId"),
        ({"resources": quota(-2)}, "deserved"),
        ({"resources": quota(4, 2)}, "limit"),
        ({"resources": [{"gpu": {"deserved": 0.5}}]}, "deserved"),
        ({"resources": [{"gpu": {"deserved": True}}]}, "deserved"),
        ({"resources": quota(1) * 2}, "resources"),
        ({"resources": [{"nodePool": {"id": "9"}}]}, "node pool"),
        ({"resources": [{"cpu": {"deserved": 4000}}]}, "quotas are of devices"),
        ({"resources": [{"priority": "high"}]}, "priorityClass"),
        ({"schedulingRules": {"trainingJobTimeLimitSeconds": 1}}, "schedulingRules"),
        ({"enforceRunaiScheduler": False}, "enforceRunaiScheduler"),
    ],
)
def test_what_cannot_be_is_refused_by_name(quiet: httpx.Client, change: Json, field: str) -> None:
    answer = quiet.post(PROJECTS, json={"name": "vision"} | change)
    assert answer.status_code == 400 and field in answer.text, answer.text
    assert quiet.get(f"{PROJECTS}/count").json() == {"count": 1}


def test_a_project_in_use_is_not_deleted_and_says_by_what(http: httpx.Client) -> None:
    project = make(http, "vision")
    path = f"{PROJECTS}/{project['id']}"
    spec = {"meta": {"name": "data", "projectId": int(project["id"])}, "spec": {"path": "/data"}}
    claim = http.post("/asset/datasource/pvc", json=spec).json()["meta"]["id"]
    body = submission("ddp") | {"projectId": project["id"]}
    workload = http.post("/workloads/distributed", json=body).json()["workloadId"]
    refused(http.delete(path), 412, "1 workload (ddp) and 1 claim (data)", "torchyard delete -p vision")
    assert http.delete(f"/asset/datasource/pvc/{claim}").status_code in (202, 204)
    assert http.delete(f"/workloads/distributed/{workload}").status_code == 202
    for _ in range(200):
        answer = http.delete(path)
        if answer.status_code == 204:
            break
    assert answer.status_code == 204, answer.text
    refused(http.post("/workloads/distributed", json=body), 400, "no project with id")
    make(http, "vision")
    assert http.get("/workloads", params={"deleted": True}).json()["workloads"] == [], (
        "a new project begins with nothing"
    )


def test_filters_sorting_pages_and_count(http: httpx.Client) -> None:
    department = make(http, "research", DEPARTMENTS)["id"]
    for number, name in enumerate(("audio", "text", "vision")):
        make(http, name, parentId=department, resources=quota(number * 5))

    def names(**query: object) -> list[str]:
        return [p["name"] for p in http.get(PROJECTS, params=query).json()["projects"]]

    assert names() == ["audio", "default", "text", "vision"]
    assert names(sortBy="totalGpuQuota", sortOrder="desc") == ["vision", "text", "audio", "default"]
    assert names(filterBy="totalGpuQuota>=5") == ["text", "vision"]
    assert names(filterBy="parentName==research,name=@i") == ["audio", "vision"]
    assert names(filterBy=f"departmentId!={department}") == ["default"]
    assert names(filterBy="createdAt<=2020-01-01") == [] and names(search="TEX") == ["text"]
    first = http.get(PROJECTS, params={"limit": 3}).json()
    assert (len(first["projects"]), first["next"]) == (3, 3)
    assert names(offset=3) == ["vision"] and http.get(PROJECTS, params={"offset": 3}).json()["next"] is None
    assert http.get(f"{PROJECTS}/count", params={"filterBy": "name=^a"}).json() == {"count": 1}
    assert http.get(f"{DEPARTMENTS}/count").json() == {"count": 2}
    for bad in ({"sortBy": "colour"}, {"filterBy": "colour==red"}, {"filterBy": "gpuAllocated>=x"}):
        refused(http.get(PROJECTS, params=bad), 400)
        refused(http.get(DEPARTMENTS, params=bad), 400)


def test_quotas_of_projects_fit_into_that_of_their_department(http: httpx.Client) -> None:
    department = make(http, "research", DEPARTMENTS, resources=quota(8))
    vision = make(http, "vision", parentId=department["id"], resources=quota(6))
    text = {"name": "text", "parentId": department["id"]}
    refused(http.post(PROJECTS, json=text | {"resources": quota(3)}), 409, "quota of 8", "9 together")
    refused(http.post(PROJECTS, json=text), 409, "project text has none")
    make(http, **text, resources=quota(2))
    refused(http.put(f"{PROJECTS}/{vision['id']}/resources", json=quota(7)), 409, "9 together")
    refused(http.put(f"{DEPARTMENTS}/{department['id']}/resources", json=quota(7)), 409, "8 together")
    shown = http.get(f"{DEPARTMENTS}/{department['id']}").json()
    assert (shown["totalResources"]["gpuQuota"], shown["projectsCount"], shown["projectsGpuQuota"]) == (8, 2, 8)
    refused(http.delete(f"{DEPARTMENTS}/{department['id']}"), 412, "text", "vision")
    put = http.put(f"{DEPARTMENTS}/{department['id']}", json={"resources": quota(9), "description": "all of it"})
    assert put.json()["description"] == "all of it" and put.json()["totalResources"]["gpuQuota"] == 9


def test_a_department_is_deleted_when_its_projects_are_gone(http: httpx.Client) -> None:
    department = make(http, "research", DEPARTMENTS)["id"]
    refused(http.post(DEPARTMENTS, json={"name": "research"}), 409, "already")
    project = make(http, "vision", parentId=department)["id"]
    assert http.delete(f"{PROJECTS}/{project}").status_code == 204
    assert http.delete(f"{DEPARTMENTS}/{department}").status_code == 204
    refused(http.get(f"{DEPARTMENTS}/{department}"), 404)


def test_who_may_do_what_ends_with_the_project(http: httpx.Client) -> None:
    project = make(http, "vision")["id"]
    grant(http, create(http, "ben@x.org")["id"], VIEWER, "project", project)
    assert http.delete(f"{PROJECTS}/{project}").status_code == 204
    rules = http.get("/authorization/access-rules", params={"filterBy": "scopeType==project"}).json()
    assert rules["accessRules"] == []


def test_an_administrator_of_a_department_stays_within_it(http: httpx.Client) -> None:
    ours, theirs = make(http, "ours", DEPARTMENTS)["id"], make(http, "theirs", DEPARTMENTS)["id"]
    other = make(http, "other", parentId=theirs)["id"]
    with person(http, "ann@x.org", DEPARTMENT, scope="department", scope_id=ours) as ann:
        mine = make(ann, "mine", parentId=ours)["id"]
        assert [p["name"] for p in ann.get(PROJECTS).json()["projects"]] == ["mine"]
        assert [d["name"] for d in ann.get(DEPARTMENTS).json()["departments"]] == ["ours"]
        assert ann.get(f"{DEPARTMENTS}/count").json() == ann.get(f"{PROJECTS}/count").json() == {"count": 1}
        for parent in (theirs, "1", "99"):
            refused(ann.post(PROJECTS, json={"name": "more", "parentId": parent}), 403)
        for path in (f"{PROJECTS}/{other}", f"{DEPARTMENTS}/{theirs}", f"{PROJECTS}/99", f"{DEPARTMENTS}/99"):
            assert ann.get(path).status_code == ann.delete(path).status_code == 404
        refused(ann.put(f"{DEPARTMENTS}/{ours}/resources", json=quota(100)), 403)
        assert ann.put(f"{PROJECTS}/{mine}/resources", json=quota(1)).status_code == 200
        assert ann.delete(f"{PROJECTS}/{mine}").status_code == 204


def test_rows_of_workloads_name_their_department(http: httpx.Client) -> None:
    department = make(http, "research", DEPARTMENTS)["id"]
    project = make(http, "vision", parentId=department, requestedNamespace="runai-vision")["id"]
    row = running(http, "ddp", compute={"gpuDevicesRequest": 1})
    assert (row["departmentName"], row["namespace"]) == ("default", "default")
    body = submission("theirs", compute={"gpuDevicesRequest": 1}) | {"projectId": project}
    made = http.post("/workloads/distributed", json=body).json()
    assert made["departmentId"] == department
    row = http.get(f"/workloads/{made['workloadId']}").json()
    assert (row["departmentName"], row["namespace"]) == ("research", "runai-vision")
    assert http.get(f"{PROJECTS}/1").json()["status"]["quotaStatus"]["allocated"]["gpu"] == 2


def test_every_change_is_in_the_audit_log(http: httpx.Client, settings: Settings) -> None:
    department, project = make(http, "research", DEPARTMENTS)["id"], make(http, "vision")["id"]
    http.put(f"{PROJECTS}/{project}/resources", json=quota(1))
    http.put(f"{DEPARTMENTS}/{department}/resources", json=quota(1))
    http.delete(f"{PROJECTS}/{project}")
    http.delete(f"{DEPARTMENTS}/{department}")
    database = open_database(settings.database_file)
    with read(database) as c:
        rows = c.execute(audit.select().order_by(audit.c.id)).all()
    database.dispose()
    assert [f"{row.action} {row.object}" for row in rows] == [
        "create department/research",
        "create project/vision",
        "update project/vision",
        "update department/research",
        "delete project/vision",
        "delete department/research",
    ]


def test_a_full_project_waits_while_others_start_until_its_quota_is_raised(http: httpx.Client) -> None:
    project = make(http, "vision", resources=quota(3))
    two = {"compute": {"gpuDevicesRequest": 1}}

    def ask(name: str, project_id: str) -> str:
        made = http.post("/workloads/distributed", json=submission(name, **two) | {"projectId": project_id})
        return str(made.json()["workloadId"])

    first, second, other = ask("seg", project["id"]), ask("pose", project["id"]), ask("text", "1")
    assert until(http, first, "Running") and until(http, other, "Running")
    row = until(http, second, "Pending")
    assert row["phaseMessage"] == "needs 2 devices, project vision has 1 of 3 free (seg holds 2); next in line"
    shown = http.get(PROJECTS, params={"filterBy": "gpuAllocated==2", "sortBy": "name"}).json()["projects"]
    assert [p["name"] for p in shown] == ["default", "vision"]
    http.put(f"{PROJECTS}/{project['id']}/resources", json=quota(1))
    never = ask("never", project["id"])
    row = until(http, never, "Pending")
    assert row["phaseMessage"].startswith("needs 2 devices, and the quota of project vision is 1")
    http.put(f"{PROJECTS}/{project['id']}/resources", json=quota(4))
    assert until(http, second, "Running")["projectName"] == "vision"
