"""Clients that exist, against a server process: the public runapy unchanged, and plain curl."""

import json
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.asking import events, submission, until
from tests.server.test_serve import Place

Json = dict[str, Any]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("yard"))
    yield made
    for server in made.started:
        server.terminate()
        server.communicate()


@pytest.fixture(scope="module")
def owner(place: Place) -> Iterator[httpx.Client]:
    """The token file's client, with one workload there."""
    with place.client(place.start(TORCHYARD_CPU_SLOTS="4")) as client:
        body = submission("ddp", command="true") | {"name": "ddp"}
        assert client.post("/workloads/distributed", json=body).status_code == 202
        yield client


@pytest.fixture(scope="module")
def key(owner: httpx.Client) -> Json:
    return dict(owner.post("/access-keys", json={"name": "script"}).json())


@pytest.fixture(scope="module")
def runai(owner: httpx.Client, key: Json) -> Any:
    """The public client, logged in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from runai.api_client import ApiClient
        from runai.configuration import Configuration
        from runai.runai_client import RunaiClient
    url = str(owner.base_url).removesuffix("/api/v1/")
    configuration = Configuration(
        client_id=key["clientId"], client_secret=key["clientSecret"], runai_base_url=url, auto_refresh_token=True
    )
    return RunaiClient(ApiClient(configuration))


def test_runapy_lists(runai: Any) -> None:
    projects = runai.organizations.projects.get_projects()
    assert [project["name"] for project in projects.data["projects"]] == ["default"]
    workloads = runai.workloads.workloads.get_workloads(filter_by=["name==ddp"], limit=5)
    assert [workload["name"] for workload in workloads.data["workloads"]] == ["ddp"]
    assert runai.workloads.workloads.count_workloads().data["count"] == 1


def test_runapy_keeps_departments_and_projects(runai: Any) -> None:
    import runai as package

    organisation = runai.organizations
    cluster = organisation.clusters.get_clusters().data[0]["uuid"]

    def devices(number: int) -> list[Any]:
        pool = package.ResourcesNodePool(id="1", name="default")
        return [package.ResourcesNullable(node_pool=pool, gpu=package.NonNullResource(deserved=number))]

    department = organisation.departments.create_department(
        package.DepartmentCreationRequest(name="research", cluster_id=cluster, resources=devices(8))
    )
    assert department.status_code == 201
    made = organisation.projects.create_project(
        package.ProjectCreationRequest(
            name="vision", cluster_id=cluster, parent_id=department.data["id"], resources=devices(2)
        )
    )
    assert (made.status_code, made.data["parent"]["name"]) == (201, "research")
    project = made.data["id"]
    listed = organisation.projects.get_projects(filter_by=["parentName==research"], sort_by="totalGpuQuota", limit=5)
    assert [one["name"] for one in listed.data["projects"]] == ["vision"]
    assert organisation.projects.count_projects(filter_by=["name==vision"]).data == {"count": 1}
    change = package.ProjectUpdateRequest(description="pictures", resources=devices(3))
    assert organisation.projects.update_project(project, change).data["description"] == "pictures"
    organisation.projects.update_project_resources(project, devices(4))
    organisation.projects.patch_project_resources(project, devices(5))
    assert organisation.projects.get_project(project).data["totalResources"]["gpuQuota"] == 5
    organisation.departments.update_department_resources(department.data["id"], devices(9))
    assert organisation.departments.get_departments().data["departments"][1]["projectsGpuQuota"] == 5
    assert organisation.projects.delete_project(project).status_code == 204
    assert organisation.departments.delete_department(department.data["id"]).status_code == 204


def test_runapy_keeps_users_and_keys(runai: Any) -> None:
    import runai as package

    identity = runai.authentication_and_authorization
    made = identity.users.create_user(package.UserCreationRequest1(email="ann@x.org"))
    assert made.status_code == 201 and made.data["tempPassword"]
    names = [user["username"] for user in identity.users.get_users(filter_by=["username==ann@x.org"]).data]
    assert names == ["ann@x.org"]
    rule = package.AccessRuleCreationFields(
        subject_id=made.data["id"], subject_type="user", role_id=4, scope_id="1", scope_type="project"
    )
    granted = identity.access_rules.create_access_rule(rule)
    assert granted.data["roleName"] == "Viewer"
    identity.access_rules.delete_access_rule(granted.data["id"])
    new = identity.access_keys.create_access_key1(package.AccessKeyCreationRequest1(name="from-runapy"))
    assert new.data["clientSecret"]
    assert identity.access_keys.regenerate_access_key_secret(new.data["id"]).data["clientSecret"]
    identity.access_keys.delete_access_key_by_id(new.data["id"])
    account = identity.service_accounts.create_service_account(package.ServiceAccountCreationRequest(name="ci-runs"))
    assert [one["id"] for one in identity.service_accounts.get_service_accounts().data] == [account.data["id"]]
    assert [one["id"] for one in identity.applications.get_applications().data] == [account.data["id"]]
    assert identity.applications.regenerate_application_secret(account.data["id"]).data["secret"]
    identity.service_accounts.delete_service_account_by_id(account.data["id"])
    identity.users.delete_user_by_id(made.data["id"])


def test_runapy_hears_that_a_secret_is_wrong(owner: httpx.Client, key: Json) -> None:
    from runai.api_client import ApiClient
    from runai.configuration import Configuration

    url = str(owner.base_url).removesuffix("/api/v1/")
    wrong = Configuration(client_id=key["clientId"], client_secret="wrong", runai_base_url=url)
    with pytest.raises(ValueError, match="Failed to get access token"):
        ApiClient(wrong)


def curl(*arguments: str) -> Json:
    done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, check=True, timeout=30)
    return dict(json.loads(done.stdout))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_logs_in_and_lists(owner: httpx.Client, key: Json) -> None:
    base = str(owner.base_url).removesuffix("/api/v1/")
    body = {"grantType": "client_credentials", "clientId": key["clientId"], "clientSecret": key["clientSecret"]}
    kind = ("-H", "Content-Type: application/json")
    token = curl("-X", "POST", f"{base}/api/v1/token", *kind, "-d", json.dumps(body))["accessToken"]
    bearer = ("-H", f"Authorization: Bearer {token}")
    projects = curl(f"{base}/api/v1/org-unit/projects", *bearer)["projects"]
    assert [project["name"] for project in projects] == ["default"]
    assert [w["name"] for w in curl(f"{base}/api/v1/workloads", *bearer)["workloads"]] == ["ddp"]
    form = ["-d", "grant_type=client_credentials", "-d", f"client_id={key['clientId']}"]
    again = curl(f"{base}/api/v2/token", *form, "-d", f"client_secret={key['clientSecret']}")
    assert curl(f"{base}/api/v1/me", "-H", f"Authorization: Bearer {again['access_token']}")["username"]
    comma = curl(f"{base}/api/v1/token", *kind, "-d", '{\n  "clientId": "a",\n}')
    assert comma["code"] == 400 and "line" in comma["message"]


SCRIPT = "echo $RANK of $WORLD_SIZE > $TORCHYARD_VOLUME_CHECKPOINTS/$TORCHYARD_REPLICA; echo ready; exec sleep 600"


def test_runapy_goes_the_whole_way(runai: Any, owner: httpx.Client) -> None:
    """Claim, training in two replicas, what it left on the claim, and nothing left behind."""
    from runai import models

    assets, runs = runai.workload_assets, runai.workloads
    cluster = runai.organizations.clusters.get_clusters().data[0]["uuid"]
    project = runai.organizations.projects.get_projects(filter_by=["name==default"]).data["projects"][0]["id"]
    assert assets.storage_classes.get_storage_classes_v2(cluster_id=cluster).data["items"]
    assert runai.organizations.node_pools.get_nodepools().data["nodepools"]
    info = models.ClaimInfo(
        access_modes=models.PvcAccessModes(read_write_many=True), size="10T", volume_mode="Filesystem"
    )
    asked = models.PVCCreationRequest(
        meta=models.AssetCreationRequest(
            name="checkpoints", scope="project", project_id=int(project), cluster_id=cluster
        ),
        spec=models.PVCAssetSpec(path="/checkpoints", claim_info=info),
    )
    assert assets.pvc.create_pvc_asset(asked).status_code == 202
    (claim,) = assets.pvc.list_pvc_assets(name="checkpoints").data["entries"]
    name = claim["spec"]["claimName"]
    mount = models.PvcInstance(claim_name=name, path="/checkpoints", existing_pvc=True)
    made = runs.distributed.create_distributed(
        models.DistributedCreationRequest(
            name="journey",
            project_id=project,
            cluster_id=cluster,
            spec=models.DistributedSpecSpec(
                command="bash",
                args=f"-euc '{SCRIPT}'",
                distributed_framework="PyTorch",
                num_workers=1,
                compute=models.SupersetSpecAllOfCompute(
                    gpu_devices_request=1, gpu_request_type="portion", gpu_portion_request=1
                ),
                storage=models.SupersetSpecAllOfStorage(pvc=[mount]),
            ),
        )
    )
    identity = made.data["workloadId"]
    files = f"/asset/datasource/pvc/{claim['meta']['id']}/files"
    until(owner, identity, "Running")
    ready = (1 for event, _, _ in events(owner, f"/workloads/{identity}/logs?follow=true") if event == "line")
    assert next(ready) + next(ready) == 2
    assert [file["path"] for file in owner.get(files).json()["entries"]] == ["master-0", "worker-0"]
    assert len(runs.pods.get_workload_pods(workload_id=identity).data["pods"]) == 2
    assert runs.events.get_workload_history(workload_id=identity).data["records"]
    with pytest.raises(Exception, match="is used by"):
        assets.pvc.delete_pvc_asset_by_id(asset_id=claim["meta"]["id"])
    runs.distributed.suspend_distributed(workload_id=identity)
    until(owner, identity, "Stopped")
    runs.distributed.delete_distributed(workload_id=identity)
    assert [event for event, _, _ in events(owner, f"/workloads/{identity}/stream")][-1] == "end"
    assert runs.workloads.get_workloads(filter_by=["name==journey"], deleted=True).data["workloads"]
    assert assets.pvc.delete_pvc_asset_by_id(asset_id=claim["meta"]["id"]).status_code == 202
