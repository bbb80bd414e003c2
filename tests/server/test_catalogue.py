"""What there is to choose from, in the shapes that clients know."""

import httpx


def test_storage_classes_of_a_cluster(http: httpx.Client) -> None:
    (cluster,) = http.get("/clusters").json()
    base = str(http.base_url).removesuffix("/v1/")
    answer = http.get(f"{base}/v2/storage-classes", params={"clusterId": cluster["uuid"]})
    (item,) = answer.json()["items"]
    assert item["clusterId"] == cluster["uuid"] and item["spec"]["isDefault"]
    assert http.get(f"{base}/v2/storage-classes", params={"clusterId": "other"}).status_code == 400
    assert http.get(f"{base}/v2/storage-classes").status_code == 400


def test_node_pools(http: httpx.Client) -> None:
    (pool,) = http.get("/node-pools").json()["nodepools"]
    nodes = [node["name"] for node in http.get("/nodes").json()["nodes"]]
    assert pool["status"]["nodes"] == nodes and pool["gpuResource"] == "cpu" and pool["isDefault"]
    assert http.get("/node-pools/count").json() == {"count": 1}
    assert http.get(f"/node-pools/{pool['id']}").json() == pool
    assert http.get("/node-pools/other").status_code == 404


def test_priorities_types_and_categories_name_each_other(http: httpx.Client) -> None:
    priorities = http.get("/workload-priorities").json()["priorities"]
    assert [p["name"] for p in sorted(priorities, key=lambda p: p["value"])][::6] == ["very-low", "very-high"]
    categories = {c["id"]: c["name"] for c in http.get("/workload-categories").json()["categories"]}
    types = {t["name"]: t for t in http.get("/workload-types").json()["types"]}
    assert types.keys() == {"training", "distributed", "workspace"}
    for kind in types.values():
        assert categories[kind["categoryId"]] == kind["categoryName"]
        assert kind["priorityId"] in {p["id"] for p in priorities}
