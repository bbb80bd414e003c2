"""The page: a browser gets in by a link that works once, sees workloads, and they change by themselves."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.server.asking import events, running, submit
from tests.server.serving import serving

from torchyard.app import build
from torchyard.engines.fake import FakeEngine, FakeWorld
from torchyard.server.auth import COOKIE
from torchyard.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data", lock_dir=tmp_path / "locks", heartbeat=0.2)


@pytest.fixture
def url(settings: Settings) -> Iterator[str]:
    with serving(build(settings, {"local": FakeEngine(FakeWorld())})) as address:
        yield address


@pytest.fixture
def http(url: str, settings: Settings) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {settings.token_file.read_text().strip()}"}
    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=20) as client:
        yield client


@pytest.fixture
def browser(url: str, http: httpx.Client) -> Iterator[httpx.Client]:
    """A browser that followed the link."""
    link = http.post("/ui/code").json()["url"]
    with httpx.Client(base_url=url, timeout=20) as client:
        assert client.get(link).status_code == 303
        yield client


def test_a_stranger_sees_how_to_get_in_and_no_workload(url: str, http: httpx.Client) -> None:
    submit(http, "hidden-one")
    answer = httpx.get(url)
    assert answer.status_code == 401 and "torchyard ui" in answer.text and "hidden-one" not in answer.text
    assert httpx.get(f"{url}/?code=guess").status_code == 401


def test_a_link_works_once_and_leaves_a_strict_cookie(url: str, http: httpx.Client) -> None:
    said = http.post("/ui/code")
    assert said.status_code == 201 and said.json()["url"].startswith(f"{url}/?code=")
    entered = httpx.get(said.json()["url"])
    assert entered.status_code == 303 and entered.headers["location"] == "/"
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower() and "Path=/" in cookie
    assert httpx.get(said.json()["url"]).status_code == 401
    assert httpx.get(url, cookies={COOKIE: entered.cookies[COOKIE]}).status_code == 200


def test_the_page_shows_workloads_and_what_they_are_called_is_text(browser: httpx.Client, http: httpx.Client) -> None:
    running(http, "ddp", command="echo '<script>alert(1)</script>'")
    page = browser.get("/")
    assert page.status_code == 200 and "ddp" in page.text and "Running" in page.text
    assert "<script>alert" not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_the_page_loads_nothing_from_elsewhere(browser: httpx.Client) -> None:
    page = browser.get("/").text
    for name in ("page.css", "page.js", "mark.svg"):
        assert f"/static/{name}" in page
        answer = browser.get(f"/static/{name}")
        assert answer.status_code == 200
        page += answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in page and "https:" not in page and "style=" not in page


def test_rows_come_by_themselves(browser: httpx.Client, http: httpx.Client) -> None:
    early = submit(http, "early")["workloadId"]
    wanted = {early}
    for event, _, data in events(browser, "/live"):
        assert event == "row" and f'id="w-{data["id"]}"' in data["html"]
        if data["id"] == early and len(wanted) == 1:
            wanted = {early, submit(http, "late")["workloadId"]}
        elif data["id"] != early:
            assert data["id"] in wanted
            return


def test_an_empty_page_says_what_to_type(browser: httpx.Client) -> None:
    assert "torchyard run" in browser.get("/").text


def test_the_page_may_use_the_api_and_other_pages_may_not(browser: httpx.Client, url: str) -> None:
    assert browser.get("/api/v1/me").status_code == 200
    assert browser.post("/api/v1/prune", json={}, headers={"Origin": "http://evil.example"}).status_code == 403
    assert browser.post("/api/v1/prune", json={}, headers={"Origin": url}).status_code == 200
