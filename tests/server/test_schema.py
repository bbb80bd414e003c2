"""The API against its own schema: whatever is sent, no answer is a crash."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from tests.server.asking import running

ENDLESS = ("streamWorkload", "streamWorkloads")


@pytest.fixture
def schema(url: str, token: str, http: httpx.Client) -> schemathesis.BaseSchema:
    running(http)
    found = schemathesis.openapi.from_url(f"{url}/openapi.json", headers={"Authorization": f"Bearer {token}"})
    return found.exclude(operation_id=list(ENDLESS))


lazy = schemathesis.pytest.from_fixture("schema")


@lazy.parametrize()
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_input_breaks_it(case: Case, token: str) -> None:
    answer = case.call(headers={"Authorization": f"Bearer {token}"})
    case.validate_response(answer, checks=[not_a_server_error])
    if answer.status_code >= 400 and case.method != "HEAD":
        assert answer.json()["code"] == answer.status_code and answer.json()["message"]
