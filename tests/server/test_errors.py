"""Errors as answers: one shape, every problem named, nothing of the inside shown."""

import logging
from collections.abc import Iterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI, Query
from pydantic import Field
from tests.server.serving import serving

from torchyard.domain.errors import Conflict
from torchyard.domain.spec import Spec
from torchyard.server import errors
from torchyard.server.body import Body, tidy


class Order(Body):
    spec: Spec
    environment: dict[str, str] = Field(default_factory=dict)


def make() -> FastAPI:
    app = FastAPI()

    @app.post("/order")
    async def order(body: Order, limit: Annotated[int, Query(ge=1, le=500)] = 1) -> dict[str, Any]:
        return body.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @app.get("/bug")
    async def bug() -> None:
        raise RuntimeError("the secret of the inside")

    @app.get("/taken")
    async def taken() -> None:
        raise Conflict("the name ddp is taken", "choose another")

    @app.put("/files/content")
    async def upload() -> dict[str, str]:
        return {}

    errors.install(app)
    app.add_middleware(errors.BodyLimit, streaming=("/files/content",))
    app.add_middleware(errors.Catch)
    return app


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serving(make()) as url, httpx.Client(base_url=url, timeout=20) as client:
        yield client


def post(http: httpx.Client, text: str | bytes, kind: str = "application/json", query: str = "") -> dict[str, Any]:
    answer = http.post(f"/order{query}", content=text, headers={"Content-Type": kind})
    assert answer.status_code == 400 and answer.json()["code"] == 400
    return answer.json()


def test_every_problem_is_named_with_its_field_and_rule(http: httpx.Client) -> None:
    said = post(http, '{"spec": {"command": "true", "numWorker": 1, "backoffLimit": 101}}')
    assert said["complianceIssues"] == [
        {"field": "spec.backoffLimit", "details": "101 is too large; the most is 100", "rule": "max"},
        {"field": "spec.numWorker", "details": "no such field; did you mean numWorkers?", "rule": "options"},
    ]
    assert "spec.numWorker: no such field; did you mean numWorkers?" in said["message"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"spec": {\n  "command": "true",\n}}', "line 2, column 20: a comma too many"),
        ('{"spec"', "line 1, column 8: the text ends too early"),
        ("", None),
        ("nonsense", "line 1, column 1"),
        (b'{"a": "\xff"}', "not UTF-8"),
        ('{"a": ' + "9" * 5000 + "}", None),
        ('{"spec": ' * 100_000, "nested too deep"),
    ],
)
def test_bad_json_is_answered_with_line_and_column(http: httpx.Client, text: str | bytes, where: str | None) -> None:
    said = post(http, text)
    assert where is None or where in said["message"], said


@pytest.mark.parametrize("text", ["[]", "1", '"x"', "null", "true", '{"spec": []}', '{"spec": {"compute": 3}}'])
def test_wrong_types_are_refused(http: httpx.Client, text: str) -> None:
    assert post(http, text)["complianceIssues"]


def test_another_content_type_is_refused_with_advice(http: httpx.Client) -> None:
    said = post(http, '{"spec": {"command": "true"}}', "application/x-www-form-urlencoded")
    assert "Content-Type: application/json" in said["details"]


def test_a_bad_query_names_its_parameter(http: httpx.Client) -> None:
    said = post(http, '{"spec": {"command": "true"}}', query="?limit=0")
    assert said["complianceIssues"][0]["field"] == "limit" and said["complianceIssues"][0]["rule"] == "min"


def test_a_value_of_the_environment_is_never_repeated(http: httpx.Client) -> None:
    said = post(http, '{"spec": {}, "environment": {"WANDB_API_KEY": 12345678}}')
    assert "environment.WANDB_API_KEY" in said["message"] and "12345678" not in str(said)


def test_our_errors_keep_status_message_and_details(http: httpx.Client) -> None:
    answer = http.get("/taken")
    assert (answer.status_code, answer.json()) == (
        409,
        {"code": 409, "message": "the name ddp is taken", "details": "choose another"},
    )


def test_a_bug_is_logged_and_not_shown(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "torchyard.server"):
        answer = http.get("/bug")
    assert answer.status_code == 500 and answer.json()["code"] == 500
    assert "secret of the inside" not in answer.text and "Traceback" not in answer.text
    assert [record.message for record in caplog.records] == ["GET /bug failed"]
    assert "secret of the inside" in caplog.text


def test_unknown_paths_and_methods(http: httpx.Client) -> None:
    assert http.get("/nowhere").json() == {"code": 404, "message": "there is nothing at /nowhere"}
    answer = http.delete("/taken")
    assert answer.status_code == 405 and answer.json()["code"] == 405 and answer.headers["allow"] == "GET"


def test_a_body_over_the_limit_is_refused_and_the_connection_lives(http: httpx.Client) -> None:
    large = b'{"spec": {"command": "' + b"x" * errors.MAX_BODY + b'"}}'
    for content in (large, iter([large[:1_000_000], large[1_000_000:]])):
        answer = http.post("/order", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, 413), answer.text
    assert http.get("/taken").status_code == 409


def test_streaming_uploads_have_limits_of_their_own(http: httpx.Client) -> None:
    assert http.put("/files/content", content=b"x" * (errors.MAX_BODY + 1)).status_code == 200


def test_nulls_count_as_left_out(http: httpx.Client) -> None:
    text = '{"spec": {"command": "true", "slotsPerWorker": null, "storage": null}, "environment": null}'
    answer = http.post("/order", content=text, headers={"Content-Type": "application/json"})
    assert answer.json() == {"spec": {"command": "true"}}


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_process_can_take_is_refused(text: str) -> None:
    for document in ({"spec": [{text: 1}]}, {"spec": [{"a": text}]}):
        with pytest.raises(ValueError, match="text"):
            tidy(document)


def test_a_tower_of_lists_is_refused() -> None:
    tower: list[object] = []
    for _ in range(500):
        tower = [tower]
    with pytest.raises(ValueError, match="nested"):
        tidy(tower)
