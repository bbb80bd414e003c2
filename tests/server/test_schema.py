"""The API against its own schema: whatever is sent, no answer is a crash."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from tests.server.asking import running

ENDLESS = ("streamWorkload", "streamWorkloads", "streamWorkloadLogs")


@pytest.fixture
def operations(url: str, token: str, http: httpx.Client) -> list[Any]:
    """Every operation that ends by itself, with a workload there to be asked for."""
    running(http)
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    return [found.ok() for found in schema.exclude(operation_id=list(ENDLESS)).get_all_operations()]


def test_no_input_breaks_it(operations: list[Any], http: httpx.Client, token: str) -> None:
    identity = http.get("/workloads").json()["workloads"][0]["id"]
    assert len(operations) > 40
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(max_examples=6, database=None, suppress_health_check=list(HealthCheck))
        def asked(case: Any) -> None:
            if "workload_id" in case.path_parameters and case.method == "GET":
                case.path_parameters["workload_id"] = identity
            answer = case.call(headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code < 500, (case.as_curl_command(), answer.text)
            if answer.status_code >= 400 and case.method != "HEAD":
                assert answer.json()["code"] == answer.status_code and answer.json()["message"]

        asked()
