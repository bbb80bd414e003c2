"""What is seen of a log: on a terminal redrawn lines stay below, in a pipe only their last state is left."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.cli.screen import Screen, progress_bar
from torchyard.client.logs import Line


def record(text: str, kind: str = "o", rank: int | None = 0, replica: str = "worker-0") -> Line:
    return Line(attempt=1, replica=replica, rank=rank, kind=kind, at="2026-01-01T00:00:00Z", text=text)


def screen(*, live: bool = False, **options: bool) -> Screen:
    return Screen(out=io.StringIO(), err=io.StringIO(), live=live, width=lambda: 40, **options)


def out(shown: Screen) -> str:
    assert isinstance(shown.out, io.StringIO)
    return shown.out.getvalue()


def err(shown: Screen) -> str:
    assert isinstance(shown.err, io.StringIO)
    return shown.err.getvalue()


def terminal(text: str) -> list[str]:
    """The rows of a terminal after this output: line feeds, returns, cursor up, erase below."""
    rows, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[A|\x1b\[J|\r|\n|[^\x1b\r\n]+", text):
        if piece == "\x1b[A":
            row -= 1
        elif piece == "\x1b[J":
            rows[row] = rows[row][:column]
            del rows[row + 1 :]
        elif piece == "\r":
            column = 0
        elif piece == "\n":
            row, column = row + 1, 0
            if row == len(rows):
                rows.append("")
        else:
            rows[row] = rows[row][:column] + piece + rows[row][column + len(piece) :]
            column += len(piece)
    return rows


def test_one_speaker_has_no_prefix() -> None:
    shown = screen()
    shown.line(record("starting", rank=None))
    shown.line(record("a"))
    shown.line(record("b", kind="e"))
    shown.close()
    assert (out(shown), err(shown)) == ("starting\na\n", "b\n")


def test_several_speakers_have_one() -> None:
    shown = screen(several=True, apart=False)
    shown.line(record("starting", rank=None))
    shown.line(record("a", rank=0))
    shown.line(record("b", kind="e", rank=11))
    shown.line(record("c", rank=1))
    shown.close()
    assert out(shown) == "worker-0 | starting\nworker-0/0 | a\nworker-0/11 | b\nworker-0/1  | c\n"


def test_second_speaker_brings_the_prefix() -> None:
    shown = screen()
    for rank in (0, 1, 0):
        shown.line(record("x", rank=rank))
    assert out(shown) == "x\nworker-0/1 | x\nworker-0/0 | x\n"


def test_pipe_gets_the_last_state_of_a_redrawn_line() -> None:
    shown = screen()
    for text in (" 10%", " 50%", " 99%"):
        shown.line(record(text, kind="er"))
    shown.line(record("epoch 1"))
    shown.line(record("100%", kind="e"))
    for text in (" 10%", " 20%"):
        shown.line(record(text, kind="er"))
    shown.close()
    assert (out(shown), err(shown)) == ("epoch 1\n", "100%\n 20%\n")


def test_terminal_shows_redrawn_lines_and_the_bar_below() -> None:
    shown = screen(live=True, several=True)
    shown.line(record(" 10%", kind="er", rank=0))
    shown.line(record(" 11%", kind="er", rank=1))
    shown.bar("step 1/10")
    shown.flush()
    assert terminal(out(shown)) == ["worker-0/0 |  10%", "worker-0/1 |  11%", "step 1/10"]
    shown.line(record("epoch 1", rank=0))
    shown.line(record(" 20%", kind="er", rank=0))
    shown.flush()
    assert terminal(out(shown)) == ["worker-0/0 | epoch 1", "worker-0/0 |  20%", "worker-0/1 |  11%", "step 1/10"]
    shown.line(record("100%", kind="e", rank=0))
    shown.say("done")
    shown.close()
    assert terminal(out(shown)) == [
        "worker-0/0 | epoch 1",
        "worker-0/0 | 100%",
        "done",
        "worker-0/1 |  11%",
        "",
    ]


def test_lines_below_never_wrap() -> None:
    shown = screen(live=True)
    shown.line(record("\x1b[31m" + "界" * 60, kind="or"))
    shown.bar("b" * 100)
    shown.flush()
    below, bar = terminal(out(shown))
    assert below == "界" * 19
    assert bar == "b" * 39


def test_continued_lines_are_put_together() -> None:
    shown = screen(several=True)
    shown.line(record("a" * 10, kind="oc", rank=0))
    shown.line(record("other", rank=1))
    shown.line(record("b" * 10, kind="oc", rank=0))
    shown.line(record("c", rank=0))
    shown.line(record("left over", kind="oc", rank=1))
    shown.close()
    lines = out(shown).splitlines()
    assert lines == ["worker-0/1 | other", f"worker-0/0 | {'a' * 10}{'b' * 10}c", "worker-0/1 | left over"]


def test_endless_line_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchyard.cli.screen.LONGEST", 10)
    shown = screen()
    for _ in range(4):
        shown.line(record("12345", kind="oc"))
    shown.close()
    assert out(shown) == "1234512345\n1234512345\n"


def test_marks_and_sentences_go_to_stderr() -> None:
    shown = screen()
    shown.line(record("3 lines were lost", kind="t"))
    shown.say("hello")
    assert (out(shown), err(shown)) == ("", "3 lines were lost\nhello\n")


def test_timestamps() -> None:
    shown = screen(timestamps=True)
    shown.line(record("a"))
    assert out(shown) == "2026-01-01T00:00:00Z a\n"


RECORDS = st.lists(
    st.builds(
        record,
        st.text("abc ", max_size=5),
        kind=st.sampled_from(["o", "or", "oc", "e", "er", "ec"]),
        rank=st.sampled_from([0, 1]),
    )
)


@given(RECORDS)
def test_terminal_and_pipe_end_with_the_same_lines(records: list[Line]) -> None:
    piped, live = screen(several=True, apart=False), screen(several=True, live=True)
    for line in records:
        piped.line(line)
        live.line(line)
        live.bar("bar")
        live.flush()
    piped.close()
    live.close()
    # Rows of a terminal end where their text ends.
    assert [row.rstrip() for row in terminal(out(live))] == [row.rstrip() for row in out(piped).split("\n")]


@pytest.mark.parametrize(
    ("progress", "bar"),
    [
        ({}, ""),
        ({"step": None, "loss": 1.0}, ""),
        ({"step": 3, "unit": "epoch"}, "epoch 3"),
        ({"step": 3, "unit": "epoch", "loss": 0.12345}, "epoch 3  loss 0.1235"),
        ({"step": 5, "total": 10, "unit": "epoch"}, f"epoch 5/10 [{'=' * 20}{' ' * 20}]  50%"),
        ({"step": 5, "total": 10, "eta": 80.2}, f"step 5/10 [{'=' * 20}{' ' * 20}]  50%  1m20s left"),
        ({"step": 10, "total": 10, "eta": 7200}, f"step 10/10 [{'=' * 40}] 100%  2h00m left"),
    ],
)
def test_progress_bar(progress: dict[str, object], bar: str) -> None:
    assert progress_bar(progress, 100) == bar


@given(
    st.fixed_dictionaries(
        {"step": st.integers(), "total": st.integers() | st.none(), "loss": st.floats() | st.none()},
    ),
    st.integers(1, 200),
)
def test_progress_bar_fits(progress: dict[str, object], width: int) -> None:
    bar = progress_bar(progress, width)
    assert "[" not in bar or len(bar) < width
