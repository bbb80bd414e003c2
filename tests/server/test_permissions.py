"""Every route with every role and with none; projects do not see each other; one trust domain."""

from pathlib import Path

import httpx
import pytest
from tests.server.asking import submission, submit
from tests.server.people import ADMINISTRATOR, DEPARTMENT, EDITOR, VIEWER, person
from tests.server.test_routes import needs
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from torchyard.policy.permissions import Grant, Place, Scope, ScopeType, allows, role_of
from torchyard.server.auth import OPEN, OPEN_FOLDERS
from torchyard.server.permit import Need, Where

ROLES = [(), (VIEWER,), (EDITOR,), (DEPARTMENT,), (ADMINISTRATOR,)]
"""Those who may delete come last."""


@pytest.fixture
def needed(tmp_path: Path) -> dict[tuple[str, str], Need | None]:
    """What every route that is not open says it needs."""
    return needs(tmp_path / "other")


def test_every_route_says_what_it_needs(needed: dict[tuple[str, str], Need | None]) -> None:
    silent = [route for route, need in needed.items() if need is None]
    assert not [(m, p) for m, p in silent if p not in OPEN and not p.startswith(OPEN_FOLDERS)]
    assert len(needed) > 90
    trusted = {path for (_, path), need in needed.items() if need is not None and need.trusted}
    assert {
        p for _, p in needed if "/files" in p or p.endswith(("/exec", "/content", "/resume", "/ui/code"))
    } <= trusted
    assert {"/api/v1/workloads/trainings", "/api/v1/workloads/distributed", "/api/v1/workloads/workspaces"} <= trusted


def permitted(need: Need, roles: tuple[int, ...]) -> bool:
    """By the table alone: these roles over everything are enough."""
    found = [role_of(role) for role in roles]
    grants = [Grant(role, Scope(ScopeType.SYSTEM, "")) for role in found if role]
    if need.trusted:
        return False
    return need.resource is None or allows(grants, need.resource, need.action, Place())


@pytest.mark.parametrize("roles", ROLES)
def test_every_route_with_this_role(
    http: httpx.Client, needed: dict[tuple[str, str], Need | None], roles: tuple[int, ...]
) -> None:
    ids = {
        "workload_id": submit(http, "ddp")["workloadId"],
        "claim_id": http.post(
            "/asset/datasource/pvc", json={"meta": {"name": "data", "projectId": 1}, "spec": {"path": "/data"}}
        ).json()["meta"]["id"],
        "project_id": "1",
        "department_id": "1",
    }
    base = str(http.base_url).removesuffix("/api/v1/")
    with person(http, "ann@x.org", *roles) as ann:
        for (method, path), need in sorted(needed.items(), key=lambda one: (one[0][0] == "DELETE", one[0])):
            if need is None:
                continue
            address = path
            for name in (
                "workload_id",
                "claim_id",
                "project_id",
                "department_id",
                "key_id",
                "user_id",
                "rule_id",
                "role_id",
                "digest",
            ):
                address = address.replace(f"{{{name}}}", ids.get(name, "0"))
            if method == "WEBSOCKET":
                with pytest.raises(InvalidStatus) as refused:
                    connect(
                        base.replace("http", "ws") + address + "?argv=sh",
                        additional_headers={"Authorization": ann.headers["Authorization"]},
                        proxy=None,
                    )
                status = refused.value.response.status_code
            else:
                with ann.stream(method, base + address, params={"path": "x"}) as answer:
                    status = answer.status_code
            if permitted(need, roles):
                assert status not in (401, 403), (method, path, status)
            elif need.where is Where.THERE and not roles:
                assert status == 404, (method, path, status)
            else:
                assert status in (403, 404), (method, path, status)


def test_whoever_has_no_role_hears_what_to_do(http: httpx.Client) -> None:
    with person(http, "ann@x.org") as ann:
        refused = ann.get("/workloads")
        assert refused.status_code == 403 and "ann@x.org may not read workloads" in refused.json()["message"]
        assert "access-rules" in refused.json()["details"]


def test_a_local_cluster_is_one_trust_domain(http: httpx.Client) -> None:
    owner = http.get("/me").json()["username"]
    running = submit(http, "mine")["workloadId"]
    with person(http, "ann@x.org", ADMINISTRATOR) as ann:
        for answer in (
            ann.post("/workloads/distributed", json=submission("hers")),
            ann.post(f"/workloads/distributed/{running}/resume"),
            ann.post("/code", content=b""),
            ann.post("/ui/code"),
        ):
            assert answer.status_code == 403 and "one trust domain" in answer.json()["message"]
            assert owner in answer.json()["details"]
        assert ann.get(f"/workloads/{running}").json()["submittedBy"] == owner
    key = http.post("/access-keys", json={"name": "script"}).json()
    body = {"clientId": key["clientId"], "clientSecret": key["clientSecret"]}
    token = httpx.post(f"{http.base_url}token", json=body).json()["accessToken"]
    with httpx.Client(base_url=http.base_url, headers={"Authorization": f"Bearer {token}"}) as script:
        assert submit(script, "by-key")["createdBy"] == owner


@pytest.fixture
def two_projects(http: httpx.Client) -> None:
    """A second project."""
    assert http.post("/org-unit/projects", json={"name": "vision"}).json()["id"] == "2"


def test_projects_do_not_see_each_other(two_projects: None, http: httpx.Client) -> None:
    ours = http.post("/workloads/distributed", json=submission("ours") | {"projectId": "1"}).json()["workloadId"]
    theirs = http.post("/workloads/distributed", json=submission("theirs") | {"projectId": "2"}).json()["workloadId"]
    spec = {"meta": {"name": "data", "projectId": 2}, "spec": {"path": "/data"}}
    claim = http.post("/asset/datasource/pvc", json=spec).json()["meta"]["id"]
    with person(http, "ann@x.org", DEPARTMENT, scope="project", scope_id="1") as ann:
        assert [w["id"] for w in ann.get("/workloads").json()["workloads"]] == [ours]
        assert ann.get("/workloads", params={"filterBy": "projectId==2"}).json()["workloads"] == []
        assert ann.get("/workloads/count").json() == {"count": 1}
        assert ann.get("/asset/datasource/pvc").json() == ann.get("/asset/datasource").json() == {"entries": []}
        assert [p["name"] for p in ann.get("/org-unit/projects").json()["projects"]] == ["default"]
        assert ann.get(f"/workloads/{ours}").status_code == 200
        for path in ("", "/pods", "/events", "/history", "/attempts", "/progress", "/explain", "/logs", "/stream"):
            there, nowhere = ann.get(f"/workloads/{theirs}{path}"), ann.get(f"/workloads/nothing{path}")
            assert there.status_code == nowhere.status_code == 404 and there.text == nowhere.text, path
        assert ann.post(f"/workloads/distributed/{theirs}/suspend").status_code == 404
        assert ann.delete(f"/workloads/distributed/{theirs}").status_code == 404
        assert ann.get(f"/asset/datasource/pvc/{claim}").status_code == 404
        assert ann.delete(f"/asset/datasource/pvc/{claim}").status_code == 404
        assert ann.get("/org-unit/projects/2").status_code == 404
        plan = submission("plan") | {"kind": "distributed", "projectId": "2"}
        assert ann.post("/render", json=plan).status_code == 403
        base = str(http.base_url).removesuffix("/api/v1/")
        assert httpx.get(base, headers=dict(ann.headers)).status_code == 401, "the page shows every project"
        assert ann.post(f"/workloads/distributed/{ours}/suspend").status_code == 202
    assert http.get(f"/workloads/{theirs}").json()["phase"] != "Stopped"


def test_a_role_taken_away_counts_at_once(http: httpx.Client) -> None:
    with person(http, "ann@x.org", VIEWER) as ann:
        assert ann.get("/workloads").status_code == 200
        (rule,) = ann.get("/authorization/me/access-rules").json()["accessRules"]
        assert http.delete(f"/authorization/access-rules/{rule['id']}").status_code == 204
        assert ann.get("/workloads").status_code == 403
