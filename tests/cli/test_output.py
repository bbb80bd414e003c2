"""Tables align, ages are short, formats hold the same, colours only where they are wanted."""

import io
import json
import queue
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.cli.conftest import Ran

from torchyard.cli import follow
from torchyard.cli.commands.checkpoint import choose
from torchyard.cli.commands.describe import describe, ranks_of
from torchyard.cli.commands.explain import page
from torchyard.cli.commands.list import COLUMNS
from torchyard.cli.commands.pvc import Place, place_of
from torchyard.cli.failure import more, sentence
from torchyard.cli.follow import end_sentence, exit_code
from torchyard.cli.output import Column, age, as_text, coloured, table
from torchyard.cli.screen import Screen
from torchyard.client.stream import ServerEvent
from torchyard.domain.errors import Invalid, NotFound, Problem

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ROW = {
    "id": "0e984725-c51c-4bf4-9960-e1c80e27aba0",
    "name": "ddp",
    "type": "distributed",
    "phase": "Running",
    "phaseMessage": "it runs",
    "replicas": 2,
    "devices": 2,
    "attempt": 1,
    "projectName": "default",
    "clusterName": "local",
    "progress": {"step": 3, "total": 10, "unit": "epoch", "loss": 0.5},
    "createdAt": NOW.isoformat(),
    "phaseUpdatedAt": NOW.isoformat(),
}


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=45), "45s"),
        (timedelta(seconds=130), "2m10s"),
        (timedelta(minutes=40), "40m"),
        (timedelta(hours=5), "5h"),
        (timedelta(days=9), "9d"),
    ],
)
def test_age(passed: timedelta, shown: str) -> None:
    assert age((NOW - passed).isoformat(), NOW) == shown
    assert age(None, NOW) == "-"


def test_table_aligns() -> None:
    columns = (Column("NAME", lambda row: row["n"]), Column("N", lambda row: str(row["v"])))
    assert table([{"n": "a", "v": 1}, {"n": "longer", "v": 22}], columns) == "NAME    N\na       1\nlonger  22\n"
    assert table([], columns) == "NAME  N\n"


def test_table_keeps_a_row_on_one_line() -> None:
    assert table([{"n": "a\nb\r\n"}], (Column("N", lambda row: row["n"]),)) == "N\na b\n"


def test_table_shows_no_control_characters() -> None:
    assert "\x1b" not in table([{"n": "a\x1b[31m"}], (Column("N", lambda row: row["n"]),))


def test_row_of_the_list() -> None:
    lines = table([ROW], [column for column in COLUMNS if not column.wide]).splitlines()
    assert lines[0].split() == ["NAME", "KIND", "PHASE", "REPLICAS", "DEVICES", "ATTEMPT", "PROGRESS", "AGE"]
    assert lines[1].split()[:8] == ["ddp", "distributed", "Running", "2", "2", "1", "epoch", "3/10"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc", min_size=1), VALUES))
def test_json_and_yaml_hold_the_same(value: dict[str, Any]) -> None:
    assert json.loads(as_text(value, "json")) == value
    assert YAML(typ="safe", pure=True).load(as_text(value, "yaml")) == value


def test_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured(Terminal())
    assert not coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Terminal())


def test_describe_tells_replicas_and_events() -> None:
    rank = {"rank": 0, "code": None, "signal": None}
    replica = {
        "name": "worker-0",
        "state": "ended",
        "signal": 9,
        "code": None,
        "devices": [0],
        "ranks": [rank],
        "pid": 7,
    }
    attempts = [
        {"number": 1, "createdAt": NOW.isoformat(), "cause": "user", "sentence": "rank 0 was killed", "replicas": []},
        {"number": 2, "createdAt": NOW.isoformat(), "cause": None, "sentence": None, "replicas": [replica]},
    ]
    events = [{"createdAt": NOW.isoformat(), "type": "Warning", "reason": "Left", "message": "sleep was left"}]
    text = describe(ROW | {"spec": {"command": "bash run.sh"}}, attempts, events)
    for told in (
        "epoch 3 of 10, loss 0.5",
        "bash run.sh",
        "rank 0 was killed",
        "signal 9",
        "sleep was left",
        "it runs",
    ):
        assert told in text


def test_explain_page() -> None:
    fault = {
        "replica": "worker-0",
        "rank": 1,
        "exit": "exit 1",
        "exception": "ValueError: boom",
        "frame": "train.py:12 in step",
        "lastLines": ["a", "b"],
    }
    verdict = {"phase": "Failed", "sentence": "rank 1 raised ValueError", "cause": "user", "fault": fault}
    text = page("ddp", verdict | {"evidence": ["attempt 3 of 3"], "nextStep": "mend it"})
    assert text.startswith("ddp is Failed: rank 1 raised ValueError\n  cause: user\n")
    for told in (
        "worker-0, rank 1: ValueError: boom at train.py:12 in step",
        "exit: exit 1",
        "| b",
        "- attempt 3",
        "mend it",
    ):
        assert told in text


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"phase": "Completed", "exitCode": 0}, 0),
        ({"phase": "Failed", "exitCode": 137}, 137),
        ({"phase": "Stopped", "exitCode": 130}, 130),
        ({"phase": "Failed", "exitCode": None}, 125),
        ({"phase": "Completed"}, 0),
        ({"phase": "Stopped"}, 130),
    ],
)
def test_exit_code(row: dict[str, Any], code: int) -> None:
    assert exit_code(row) == code


def test_end_sentence() -> None:
    assert end_sentence({"name": "a", "phase": "Completed", "phaseMessage": ""}, {}) == "a completed"
    deleted = {"name": "a", "phase": "Deleting", "phaseMessage": "deleted by ann"}
    assert (end_sentence(deleted, {}), exit_code(deleted)) == ("a was deleted", 130)
    verdict = {"sentence": "rank 1 failed", "nextStep": "look"}
    assert (
        end_sentence({"name": "a", "phase": "Failed", "phaseMessage": "x"}, verdict)
        == "a failed: rank 1 failed\n  next: look"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("data:/", Place("data", "", True)),
        ("data:", Place("data", "", True)),
        ("data:/a/b", Place("data", "a/b", False)),
        ("data:a//./b/", Place("data", "a/b", True)),
        ("./data", None),
        ("./a:b", None),
        ("/x/a:b", None),
        ("data", None),
    ],
)
def test_place(text: str, place: Place | None) -> None:
    assert place_of(text) == place


def test_place_stays_in_its_claim() -> None:
    with pytest.raises(Invalid, match="leads out"):
        place_of("data:/a/../../b")


def test_choose_checkpoint() -> None:
    found: list[dict[str, Any]] = [
        {"claim": "c", "path": "new.pt", "complete": False},
        {"claim": "c", "path": "sub/old.pt", "complete": True},
    ]
    assert choose("ddp", found, None) is found[1]
    found.append({"claim": "c", "path": "own.pt", "complete": True, "attempt": 2})
    assert choose("ddp", found, None) is found[2]
    for name in ("old.pt", "sub/old.pt", "c:/sub/old.pt"):
        assert choose("ddp", found, name) is found[1]
    with pytest.raises(NotFound, match=r"no checkpoint 'x\.pt'"):
        choose("ddp", found, "x.pt")
    with pytest.raises(NotFound, match="no complete checkpoint"):
        choose("ddp", found[:1], None)


def test_a_burst_of_lines_is_shown_to_its_end_when_the_workload_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LATE_SECONDS", 0.2)
    events: queue.Queue[follow.Came] = queue.Queue()
    events.put(follow.Came("change", ServerEvent("end", None, {"phase": "Completed"})))

    def speak() -> None:
        for number in range(8):
            time.sleep(0.08)
            data = {"attempt": 1, "text": str(number), "replica": "worker-0", "kind": "o", "at": ""}
            events.put(follow.Came("log", ServerEvent("line", str(number), data)))
        events.put(follow.Came("log", ServerEvent("end", None, {})))

    threading.Thread(target=speak, daemon=True).start()
    shown = io.StringIO()
    story = follow.Story("ddp")
    follow._show(events, story, Screen(out=shown, err=io.StringIO(), live=False, width=lambda: 80))
    assert story.over and shown.getvalue().split() == [str(number) for number in range(8)]


def test_ranks_with_their_processes() -> None:
    again, first = {"rank": 1, "pid": 13, "restart": 1}, {"rank": 1, "pid": 12, "restart": 0}
    ranks = [again, first, {"rank": 0, "pid": 11, "restart": 0}]
    assert ranks_of({"ranks": ranks}) == "0 (11), 1 (13)"
    assert ranks_of({}) == "-"


@pytest.mark.usefixtures("untouched")
def test_an_unknown_status_is_refused(cli: Callable[..., Ran]) -> None:
    ran = cli("list", "--status", "Runing")
    assert ran.code == 2 and "'Runing' is no phase" in ran.err and "Running" in ran.err


def test_one_problem_is_told_once() -> None:
    found = Invalid("asks for 8", "ask for 4", (Problem("spec.compute", "asks for 8"),))
    assert (sentence(found), more(found)) == ("spec.compute: asks for 8", ["ask for 4"])
    two = Invalid("a; b", "mend both", (Problem("spec.x", "a"), Problem("spec.y", "b")))
    assert (sentence(two), more(two)) == ("2 things are wrong", ["spec.x: a", "spec.y: b", "mend both"])


@pytest.mark.usefixtures("untouched")
def test_bad_paths_and_sizes(cli: Callable[..., Ran]) -> None:
    assert "one of the two paths" in cli("pvc", "cp", "./a", "./b").err
    assert "one of the two paths" in cli("pvc", "cp", "a:/x", "b:/y").err
    ran = cli("pvc", "create", "c", "--size", "ten", "--path", "/c")
    assert (ran.code, "'ten' is not a size" in ran.err) == (2, True)


@pytest.mark.usefixtures("untouched")
def test_render_needs_no_server(cli: Callable[..., Ran], here: Any) -> None:
    (here / "s.yaml").write_text(
        "kind: distributed\nname: ddp\nspec: {command: bash run.sh, numWorkers: 1, compute: {gpuDevicesRequest: 2},\n"
        "  storage: {pvc: [{claimName: c, path: /c, existingPvc: true}]}}\n"
    )
    ran = cli("render", "s.yaml", "--cluster", "local", "-o", "json")
    plan = json.loads(ran.out)
    assert (plan["ranks"], plan["isolation"]) == (4, "sandbox")
    assert [replica["name"] for replica in plan["replicas"]] == ["master-0", "worker-0"]
    assert YAML(typ="safe", pure=True).load(cli("render", "s.yaml").out) == plan
    assert cli("render", "s.yaml", "--cluster", "moon").code == 2
    (here / "s.yaml").write_text("kind: training\nspec: {}")
    assert cli("render", "s.yaml").code == 2
