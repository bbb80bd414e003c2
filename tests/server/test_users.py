"""Users: made with a password, filtered, switched off, deleted; the owner is there from the first start."""

import httpx
import pytest
from tests.server.people import ADMINISTRATOR, create, enter, grant, person


def test_the_owner_is_the_first_user_and_stays(http: httpx.Client) -> None:
    (owner,) = http.get("/users").json()
    assert owner["username"] == http.get("/me").json()["username"] and owner["isLocal"]
    path = f"/users/{owner['id']}"
    for answer in (http.delete(path), http.patch(path, json={"enabled": False}), http.post(f"{path}/password")):
        assert answer.status_code == 409 and "owns this server" in answer.json()["message"]
    assert http.get("/authorization/me/access-rules").json()["accessRules"][0]["roleName"] == "System administrator"


def test_users_are_made_once(http: httpx.Client) -> None:
    made = create(http, "Ann@Example.com")
    assert made["username"] == "ann@example.com" and len(made["tempPassword"]) >= 12 and "_" not in made["id"]
    assert "tempPassword" not in http.get(f"/users/{made['id']}").json()
    taken = http.post("/users", json={"email": "ann@example.COM"})
    assert taken.status_code == 409 and "ann@example.com" in taken.json()["message"]
    for bad in ("", " ", "a b", "a/b", "x" * 256, "a\u0000"):
        assert http.post("/users", json={"email": bad}).status_code == 400
    assert http.get("/users/count").json() == {"count": 2}
    assert http.delete(f"/users/{made['id']}").status_code == 204
    assert http.get(f"/users/{made['id']}").status_code == 404


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("username==ben@x.org", ["ben@x.org"]),
        ("username=^a", ["ann@x.org"]),
        ("username=$x.org,username!=ben@x.org", ["ann@x.org"]),
        ("username=@x.org,isLocal==true", ["ann@x.org", "ben@x.org"]),
        ("isLocal==False", []),
        ("creationTime<=2020-01-01,username=@x.org", []),
        ("creationTime>=2020-01-01T00:00:00Z,username=@x.org", ["ann@x.org", "ben@x.org"]),
        ("lastLogin>=2020-01-01,username=@x.org", []),
        ("username==' OR 1=1 --", []),
    ],
)
def test_users_are_filtered(http: httpx.Client, query: str, names: list[str]) -> None:
    create(http, "ann@x.org"), create(http, "ben@x.org")
    assert [u["username"] for u in http.get("/users", params={"filterBy": query}).json()] == names


def test_wrong_filters_are_named(http: httpx.Client) -> None:
    for query in ({"filterBy": "age==3"}, {"filterBy": "creationTime=@3"}, {"sortBy": "age"}, {"filterBy": "x"}):
        assert http.get("/users", params=query).status_code == 400


def test_whoever_is_switched_off_or_deleted_is_out_at_once(http: httpx.Client) -> None:
    with person(http, "ann@x.org", ADMINISTRATOR) as ann:
        (user,) = ann.get("/users", params={"filterBy": "username==ann@x.org"}).json()
        key = ann.post("/access-keys", json={"name": "script"}).json()
        body = {"clientId": key["clientId"], "clientSecret": key["clientSecret"]}
        script = httpx.post(f"{http.base_url}token", json=body).json()["accessToken"]
        with enter(http, script) as other:
            assert other.get("/me").json()["username"] == "ann@x.org"
            http.patch(f"/users/{user['id']}", json={"enabled": False})
            assert (ann.get("/me").status_code, other.get("/me").status_code) == (401, 401)
            assert httpx.post(f"{http.base_url}token", json=body).status_code == 400
            http.patch(f"/users/{user['id']}", json={"enabled": True})
            assert other.get("/me").status_code == 200
            http.delete(f"/users/{user['id']}")
            assert other.get("/me").status_code == 401
        assert httpx.post(f"{http.base_url}token", json=body).status_code == 400


def test_a_password_is_changed_by_its_user_and_reset_by_others(http: httpx.Client) -> None:
    made = create(http, "ann@x.org")

    def come_in(password: str) -> httpx.Response:
        return httpx.post(f"{http.base_url}token", json={"username": "ANN@x.org", "password": password}, timeout=20)

    with enter(http, come_in(made["tempPassword"]).json()["accessToken"]) as ann:
        short = ann.post("/me/password", json={"currentPassword": made["tempPassword"], "newPassword": "kurz"})
        assert short.status_code == 400 and "kurz" not in short.text
        wrong = ann.post("/me/password", json={"currentPassword": "no", "newPassword": "long enough now"})
        assert wrong.status_code == 400
        body = {"currentPassword": made["tempPassword"], "newPassword": "long enough now"}
        assert ann.post("/me/password", json=body).status_code == 204
        assert ann.get("/me").status_code == 401, "what came in with the old password is out"
    assert come_in(made["tempPassword"]).status_code == 400
    assert come_in("long enough now").status_code == 200
    fresh = http.post(f"/users/{made['id']}/password").json()["password"]
    assert come_in("long enough now").status_code == 400
    with enter(http, come_in(fresh).json()["accessToken"]) as ann:
        assert http.post(f"/users/{made['id']}/logout").status_code == 204
        assert ann.get("/me").status_code == 401


def test_what_was_sent_as_a_secret_is_never_repeated(http: httpx.Client) -> None:
    for path, body in (
        ("/me/password", {"currentPassword": {"hunter2": 1}, "newPassword": ["hunter2"]}),
        ("/token", {"clientId": "a", "clientSecret": ["hunter2"]}),
    ):
        answer = http.post(path, json=body)
        assert answer.status_code == 400 and "hunter2" not in answer.text


def test_a_rule_for_nobody_or_nothing_is_refused(http: httpx.Client) -> None:
    made = create(http, "ann@x.org")
    rule = {"subjectId": made["id"], "subjectType": "user", "roleId": 3, "scopeType": "project", "scopeId": "1"}
    for change, status in (
        ({"subjectId": "nobody"}, 404),
        ({"roleId": 99}, 404),
        ({"scopeId": "77"}, 400),
        ({"scopeType": "galaxy"}, 400),
        ({"subjectType": "app"}, 400),
        ({"subjectType": "group"}, 400),
    ):
        answer = http.post("/authorization/access-rules", json=rule | change)
        assert answer.status_code == status, change
    found = grant(http, made["id"], 3, "project", "1")
    assert (found["roleName"], found["scopeName"]) == ("Project editor", "default")
    again = http.post("/authorization/access-rules", json=rule)
    assert again.status_code == 409
    listed = http.get("/authorization/access-rules", params={"filterBy": f"subjectId=={made['id']}"}).json()
    assert [one["id"] for one in listed["accessRules"]] == [found["id"]] and listed["totalRecords"] == 1
    assert http.delete(f"/authorization/access-rules/{found['id']}").status_code == 204
    assert http.delete(f"/authorization/access-rules/{found['id']}").status_code == 404
