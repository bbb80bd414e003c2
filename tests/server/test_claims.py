"""Claims as Run:ai assets, their files, code folders, and checkpoints on them."""

import hashlib
import io
import tarfile

import httpx
import pytest
from tests.server.asking import Json, submit


def make(http: httpx.Client, name: str = "checkpoints", **spec: object) -> Json:
    info = {"size": "10TB", "accessModes": {"readWriteMany": True}}
    body = {
        "meta": {"name": name, "scope": "project", "projectId": 1},
        "spec": {"path": "/checkpoints", "existingPvc": False, "claimInfo": info} | spec,
    }
    answer = http.post("/asset/datasource/pvc", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()


def test_a_claim_has_the_shape_of_an_asset(http: httpx.Client) -> None:
    made = make(http)
    assert made["meta"]["kind"] == "pvc" and made["meta"]["projectId"] == 1 and made["meta"]["scope"] == "project"
    assert made["spec"]["claimName"] == "checkpoints" and made["spec"]["claimInfo"]["size"] == "10TB"
    assert made["clusterInfo"]["resources"][0]["name"] == "checkpoints"
    identity = made["meta"]["id"]
    assert http.get(f"/asset/datasource/pvc/{identity}").json()["meta"] == made["meta"]
    for path in ("/asset/datasource", "/asset/datasource/pvc", "/asset/datasource/pvc?name=checkpoints&projectId=1"):
        assert [entry["meta"]["id"] for entry in http.get(path).json()["entries"]] == [identity]
    assert http.get("/asset/datasource/pvc?name=other").json() == {"entries": []}
    assert http.delete(f"/asset/datasource/pvc/{identity}").status_code == 202
    assert http.get(f"/asset/datasource/pvc/{identity}").status_code == 404


def test_sizes_as_people_write_them(http: httpx.Client) -> None:
    for number, size in enumerate(("10TB", "10TiB", "10T", "10Ti")):
        make(http, f"c{number}", claimInfo={"size": size})


@pytest.mark.parametrize(
    ("meta", "spec", "says"),
    [
        ({"name": "Bad Name"}, {"path": "/c"}, "meta.name"),
        ({"name": "c"}, {"path": "c"}, "spec.path"),
        ({"name": "c"}, {"path": "/../etc"}, "spec.path: leads upwards (..): write the path out"),
        ({"name": "c"}, {"path": "/c", "claimInfo": {"size": "ten"}}, "spec.claimInfo.size"),
        ({"name": "c", "scope": "cluster"}, {"path": "/c"}, "meta.scope"),
        ({"name": "c", "projectId": 9}, {"path": "/c"}, "project"),
        ({"name": "c"}, {"path": "/c", "ephemeral": True}, "spec.ephemeral"),
        ({"name": "c"}, {"path": "/c", "existingPvc": True, "claimName": "x"}, "spec.existingPvc"),
        ({"name": "c", "private": True}, {"path": "/c"}, "meta.private"),
    ],
)
def test_a_bad_claim_is_refused(quiet: httpx.Client, meta: Json, spec: Json, says: str) -> None:
    answer = quiet.post("/asset/datasource/pvc", json={"meta": meta, "spec": spec})
    assert answer.status_code == 400 and says in answer.json()["message"], answer.text
    assert quiet.get("/asset/datasource/pvc").json() == {"entries": []}


def test_a_claim_in_use_stays(http: httpx.Client) -> None:
    identity = make(http)["meta"]["id"]
    pvc = {"claimName": "checkpoints", "path": "/checkpoints", "existingPvc": True}
    made = submit(http, storage={"pvc": [pvc]})
    answer = http.delete(f"/asset/datasource/pvc/{identity}")
    assert answer.status_code == 412 and "ddp" in answer.json()["message"]
    users = http.get(f"/asset/datasource/pvc/{identity}").json()["usedBy"]["distributed"]
    assert [user["id"] for user in users] == [made["workloadId"]]
    assert make(http, "other")["meta"]["name"] == "other"
    assert (
        http.post("/asset/datasource/pvc", json={"meta": {"name": "other"}, "spec": {"path": "/c"}}).status_code == 409
    )


def test_files_go_in_and_come_out(http: httpx.Client) -> None:
    base = f"/asset/datasource/pvc/{make(http)['meta']['id']}/files"
    data = bytes(range(256)) * 60_000
    assert http.put(f"{base}/content", params={"path": "/runs/a b.bin"}, content=data).status_code == 204
    (entry,) = http.get(base, params={"path": "runs"}).json()["entries"]
    assert (entry["path"], entry["folder"], entry["size"]) == ("runs/a b.bin", False, len(data))
    answer = http.get(f"{base}/content", params={"path": "runs/a b.bin"})
    assert answer.content == data and answer.headers["content-length"] == str(len(data))
    assert answer.headers["content-disposition"] == "attachment"
    assert http.delete(f"{base}/content", params={"path": "runs/a b.bin"}).status_code == 204
    assert http.get(f"{base}/content", params={"path": "runs/a b.bin"}).status_code == 404


@pytest.mark.parametrize("path", ["../token", "/../../token", "a/../../token", "a\0b"])
def test_files_never_leave_the_claim(http: httpx.Client, path: str) -> None:
    base = f"/asset/datasource/pvc/{make(http)['meta']['id']}/files"
    for answer in (
        http.get(f"{base}/content", params={"path": path}),
        http.get(base, params={"path": path}),
        http.put(f"{base}/content", params={"path": path}, content=b"x"),
        http.delete(f"{base}/content", params={"path": path}),
    ):
        assert answer.status_code in (400, 404), answer.text


def archive(text: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        entry = tarfile.TarInfo("train.py")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return file.getvalue()


def test_code_is_kept_by_content(http: httpx.Client) -> None:
    data = archive(b"print(1)\n")
    digest = hashlib.sha256(data).hexdigest()
    assert http.head(f"/code/{digest}").status_code == 404
    answer = http.post("/code", content=data, headers={"Content-Type": "application/gzip"})
    assert (answer.status_code, answer.json()) == (201, {"code": f"sha256:{digest}"})
    assert http.head(f"/code/{digest}").status_code == 200 == http.head(f"/code/sha256:{digest}").status_code


def test_what_is_no_archive_is_refused(http: httpx.Client) -> None:
    assert http.post("/code", content=b"no archive").status_code == 400
    for odd in ("..%2Ftoken", "a%00b", "x"):
        assert http.head(f"/code/{odd}").status_code == 404


def test_checkpoints_of_a_workload_without_claims(http: httpx.Client) -> None:
    identity = submit(http)["workloadId"]
    assert http.get(f"/workloads/{identity}/checkpoints").json() == {"checkpoints": []}
    assert http.post(f"/workloads/{identity}/checkpoints/verify").json() == {"checkpoints": []}
    answer = http.get(f"/workloads/{identity}/checkpoints/content", params={"path": "snapshot.pt"})
    assert answer.status_code == 404 and "none yet" in answer.json()["details"]


def test_prune_says_what_it_would_do(http: httpx.Client) -> None:
    for body in ({"dryRun": True}, {"olderThan": "30d", "dryRun": True}, {"olderThan": 5, "dryRun": False}):
        said = http.post("/prune", json=body)
        assert said.status_code == 200 and said.json()["workloads"] == [] and said.json()["sentence"], said.text
    assert http.post("/prune", json={"olderThan": "long ago"}).status_code == 400


def test_places(http: httpx.Client) -> None:
    (project,) = http.get("/org-unit/projects").json()["projects"]
    assert (project["id"], project["name"]) == ("1", "default")
    assert http.get("/org-unit/projects/1").json() == project and http.get("/org-unit/projects/2").status_code == 404
    (cluster,) = http.get("/clusters").json()
    assert cluster["name"] == "local" and cluster["status"]["state"] == "Connected"
    node = http.get("/nodes").json()["nodes"][0]
    assert node["clusterUuid"] == cluster["uuid"] and node["devices"][0].keys() >= {"index", "free", "heldBy"}
    assert http.get("/me").json()["username"]


def test_a_claim_can_be_called_and_mounted_otherwise(http: httpx.Client) -> None:
    made, other = make(http), make(http, "other")
    identity = made["meta"]["id"]
    path = f"/asset/datasource/pvc/{identity}"
    # As clients send it: what they were given, with their change.
    body = {"meta": made["meta"] | {"name": "snapshots", "description": "all of them"}, "spec": {"path": "/snapshots"}}
    assert http.put(path, json=body).status_code == 202
    changed = http.get(path).json()
    assert (changed["meta"]["name"], changed["meta"]["description"]) == ("snapshots", "all of them")
    assert (changed["spec"]["path"], changed["spec"]["claimName"]) == ("/snapshots", "checkpoints")
    assert http.put(path, json={"meta": {"name": other["meta"]["name"]}}).status_code == 409
    assert http.put(path, json={"spec": {"path": "/a/../b"}}).status_code == 400
    assert http.put("/asset/datasource/pvc/none", json={}).status_code == 404
    records = http.get(f"{path}/history").json()["records"]
    told = [record["spec"]["phaseUpdate"]["phaseMessage"].split()[0] for record in records]
    assert told == ["changed", "made"]
    assert len(http.get(f"{path}/history?limit=1").json()["records"]) == 1


def test_claims_are_listed_by_scope_and_id(http: httpx.Client) -> None:
    first, second = (make(http, name)["meta"] for name in ("one", "two"))

    def names(**query: object) -> list[str]:
        answer = http.get("/asset/datasource/pvc", params=query)  # type: ignore[arg-type]
        return [entry["meta"]["name"] for entry in answer.json()["entries"]]

    assert names(assetIds=second["id"]) == ["two"]
    assert names(assetIds=f"{first['id']},{second['id']}") == ["one", "two"]
    assert names(scope="project", projectId=1, complyToWorkloadType="distributed") == ["one", "two"]
    assert names(scope="cluster", clusterId=first["clusterId"]) == ["one", "two"]
    assert names(scope="cluster", includeDescendants=False) == names(clusterId="other") == names(departmentId="9") == []
    assert http.get("/asset/datasource/pvc", params={"scope": "moon"}).status_code == 400
