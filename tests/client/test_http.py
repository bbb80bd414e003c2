"""Answers of a server become values or domain errors; broken connections become a sentence."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.client.http import Address, Server, failure, target
from torchyard.domain.errors import (
    Conflict,
    Forbidden,
    InUse,
    Invalid,
    NotFound,
    TooLarge,
    TorchyardError,
    Unauthorized,
    Unavailable,
)


@contextmanager
def answering(*answers: bytes, close_after: bool = False) -> Iterator[tuple[str, list[bytes]]]:
    """A peer that gives these raw answers, one a request, and keeps what it was sent."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        left = list(answers)
        while left:
            connection, _ = listener.accept()
            with connection:
                while left:
                    request = connection.recv(65536)
                    if not request:
                        break
                    asked.append(request)
                    connection.sendall(left.pop(0))
                    if close_after:
                        break

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        thread.join(10)
        listener.close()
        assert not thread.is_alive()


def said(status: str, body: object) -> bytes:
    """A raw answer with a JSON body."""
    raw = json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


def server_at(url: str) -> Server:
    return Server(lambda: Address(url, "secret"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (412, InUse),
        (413, TooLarge),
        (418, Invalid),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
def test_status_becomes_domain_error(status: int, kind: type[TorchyardError]) -> None:
    error = failure(status, json.dumps({"code": status, "message": "no", "details": "do this"}).encode())
    assert type(error) is kind
    assert (error.message, error.details) == ("no", "do this")


def test_issues_and_findings_become_problems_once() -> None:
    body = {
        "code": 400,
        "message": "no",
        "complianceIssues": [{"field": "spec.image", "details": "is missing", "rule": "required"}],
        "findings": [
            {"where": "spec.image", "message": "is missing", "severity": "error", "rule": "image"},
            {"where": "spec.command", "message": "is odd", "severity": "warning", "rule": "command"},
        ],
    }
    problems = failure(400, json.dumps(body).encode()).problems
    assert [(p.field, p.details) for p in problems] == [("spec.image", "is missing")]


@given(st.integers(400, 599), st.binary(max_size=200))
def test_any_error_body_becomes_a_domain_error(status: int, body: bytes) -> None:
    assert failure(status, body).message


def test_token_and_query_are_sent_and_json_comes_back() -> None:
    with answering(said("200 OK", {"workloads": []})) as (url, asked), server_at(url) as server:
        assert server.get("/workloads", filterBy="name==a,b", deleted=True, search=None) == {"workloads": []}
    head = asked[0].decode()
    assert head.startswith("GET /api/v1/workloads?filterBy=name%3D%3Da%2Cb&deleted=true HTTP/1.1")
    assert "Authorization: Bearer secret" in head


def test_one_connection_serves_several_requests() -> None:
    with answering(said("200 OK", 1), said("200 OK", 2)) as (url, _), server_at(url) as server:
        assert (server.get("/a"), server.get("/b")) == (1, 2)


def test_kept_connection_that_was_closed_is_opened_again_for_a_create_with_a_key() -> None:
    answers = (said("200 OK", 1), said("202 Accepted", 2))
    with answering(*answers, close_after=True) as (url, asked), server_at(url) as server:
        server.get("/a")
        assert server.post("/b", {"name": "x"}, key="k") == 2
    assert b"Idempotency-Key: k" in asked[1]


def test_a_change_without_key_is_never_sent_twice() -> None:
    with answering(said("200 OK", 1), close_after=True) as (url, _):
        server = server_at(url)
        server.get("/a")
        with pytest.raises(Unavailable):
            server.post("/b")


def test_nobody_there_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="no torchyard server answers at") as caught:
        server_at(f"http://127.0.0.1:{port}").get("/workloads")
    assert caught.value.details


def test_answer_of_something_else_is_told() -> None:
    html = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"
    with answering(html) as (url, _), server_at(url) as server, pytest.raises(Unavailable):
        server.get("/workloads")


@pytest.mark.parametrize("url", ["localhost:80", "ftp://x", "http://", "http://[", ""])
def test_wrong_address_is_told(url: str) -> None:
    with pytest.raises(Invalid, match="address"):
        server_at(url).get("/workloads")


def test_target_leaves_out_what_is_none() -> None:
    assert target("/a", {"x": None, "y": False, "z": 0}) == "/api/v1/a?y=false&z=0"
