"""Every route there is: nobody gets in without a token but where the one open list says so."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from torchyard.app import build
from torchyard.server.auth import OPEN, OPEN_FOLDERS
from torchyard.server.permit import Need
from torchyard.settings import Settings


def routes(tmp_path: Path) -> list[tuple[str, str]]:
    """(method or WEBSOCKET, path) of every route of the app."""
    return sorted(set(_walk(build(Settings(data=tmp_path), {}).routes, "")))


def needs(tmp_path: Path) -> dict[tuple[str, str], Need | None]:
    """What each route needs; None where it does not say."""
    return dict(_needs(build(Settings(data=tmp_path), {}).routes, ""))


def _needs(found: Any, prefix: str) -> Iterator[tuple[tuple[str, str], Need | None]]:
    for route in found:
        if hasattr(route, "original_router"):
            yield from _needs(route.original_router.routes, prefix + route.include_context.prefix)
        elif hasattr(route, "dependencies"):
            said = [one.dependency for one in route.dependencies if isinstance(one.dependency, Need)]
            for method in getattr(route, "methods", None) or ("WEBSOCKET",):
                yield (method, prefix + route.path), said[0] if said else None


def _walk(found: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for route in found:
        if hasattr(route, "original_router"):
            yield from _walk(route.original_router.routes, prefix + route.include_context.prefix)
        elif hasattr(route, "routes") and route.routes is not None and not hasattr(route, "methods"):
            yield ("GET", f"{prefix}{route.path}/page.css")
        else:
            for method in getattr(route, "methods", None) or ("WEBSOCKET",):
                yield (method, prefix + route.path)


def test_every_route_needs_a_token(url: str, tmp_path: Path) -> None:
    known = routes(tmp_path / "other")
    assert len(known) > 50 and ("WEBSOCKET", "/api/v1/workloads/{workload_id}/exec") in known
    closed = [(m, p) for m, p in known if p not in OPEN and not p.startswith(OPEN_FOLDERS)]
    with httpx.Client(base_url=url) as stranger:
        for method, path in closed:
            address = re.sub(r"\{\w+\}", "x", path)
            if method == "WEBSOCKET":
                with pytest.raises(InvalidStatus) as refused:
                    connect(url.replace("http", "ws") + address + "?argv=sh", proxy=None)
                assert refused.value.response.status_code == 401
                continue
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "torchyard=99999999999.00"}):
                answer = stranger.request(method, address, headers=headers)
                assert answer.status_code == 401, (method, path)
                assert answer.headers["www-authenticate"] == "Bearer"
                assert method == "HEAD" or answer.json()["code"] == 401


def test_the_open_routes_are_there_and_say_little(url: str, tmp_path: Path) -> None:
    known = {path for _, path in routes(tmp_path / "other")}
    assert set(OPEN) <= known
    assert httpx.get(f"{url}/api/v1/health").json().keys() == {"status", "version"}
    assert httpx.get(f"{url}/openapi.json").json()["info"]["title"] == "torchyard"
    assert httpx.get(f"{url}/static/page.css").status_code == 200
    assert httpx.get(f"{url}/").status_code == 401


@pytest.mark.parametrize(
    "path", ["/static/../page.py", "/static/%2e%2e/page.py", "/static//etc/passwd", "/docs", "/redoc"]
)
def test_nothing_else_is_served(url: str, path: str) -> None:
    assert httpx.get(url + path).status_code in (401, 404)


def test_a_rebound_name_and_a_foreign_page_get_nothing(url: str, token: str) -> None:
    ours = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{url}/api/v1/me", headers=ours).status_code == 200
    for bad in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = httpx.get(f"{url}/api/v1/me", headers=ours | bad)
        assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers
    with pytest.raises(InvalidStatus) as refused:
        connect(
            url.replace("http", "ws") + "/api/v1/workloads/x/exec?argv=sh",
            origin="http://evil.example",
            additional_headers=ours,
            proxy=None,
        )
    assert refused.value.response.status_code == 403


def test_operations_have_ids_of_their_own_and_say_how_they_fail(url: str) -> None:
    paths = httpx.get(f"{url}/openapi.json").json()["paths"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids)) and all(one.isalpha() and one[0].islower() for one in ids)
    assert all(operation.get("summary") and operation.get("description") for operation in operations)
    assert not any("422" in operation["responses"] for operation in operations)
