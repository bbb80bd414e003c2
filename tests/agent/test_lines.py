"""Any bytes in any pieces come out as the same lines; nothing is lost, nothing is invented."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from torchyard.agent.lines import IDLE, LONGEST, Lines, Parted

ALPHABET = st.sampled_from(
    [b"a", b"b ", "ü".encode(), "€".encode(), "🙂".encode(), b"\xff", b"\r", b"\n", b"\r\n", b"\0"]
)
BYTES = st.lists(ALPHABET, max_size=60).map(b"".join)
Records = list[tuple[bytes, bytes]]


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def read(records: Records) -> Records:
    """What a reader makes of the records: whole lines and whole redraws."""
    out, begun = [], b""
    for kind, text in records:
        begun += text
        if kind != b"oc":
            out.append((kind, begun))
            begun = b""
    assert not begun
    return out


def expected(data: bytes) -> tuple[list[bytes], list[bytes]]:
    """Lines, and all that was drawn, of the whole text at once."""
    *lines, rest = data.replace(b"\r\n", b"\n").split(b"\n")
    if rest.rpartition(b"\r")[2]:
        lines.append(rest)
        rest = b""
    texts = [line.rpartition(b"\r")[2] for line in lines]
    drawn = [picture for line in [*lines, rest] for picture in line.split(b"\r")[:-1]]
    return texts, drawn


@given(BYTES, st.lists(st.integers(0, 200)))
def test_pieces_do_not_matter(data: bytes, cuts: list[int]) -> None:
    lines, records = Lines(b"o"), []
    for piece in pieces_of(data, cuts):
        records += lines.feed(piece, 0)
    records += lines.close(0)
    whole = read(records)
    texts, drawn = expected(data)
    assert [text for kind, text in whole if kind == b"o"] == texts
    pictures = iter(drawn)
    assert all(text in pictures for kind, text in whole if kind == b"or")  # in order
    assert records == (once := Lines(b"o")).feed(data, 0) + once.close(0)


@given(BYTES, st.lists(st.integers(0, 200)), st.lists(st.floats(0, 3), min_size=8, max_size=8))
def test_waiting_does_not_matter(data: bytes, cuts: list[int], waits: list[float]) -> None:
    """Unfinished lines are shown while they wait, and are still the same lines in the end."""
    lines, records, now = Lines(b"o"), [], 0.0
    for index, piece in enumerate(pieces_of(data, cuts)):
        records += lines.feed(piece, now)
        now += waits[index % len(waits)]
        records += lines.tick(now)
    records += lines.close(now)
    assert [text for kind, text in read(records) if kind == b"o"] == expected(data)[0]


@given(st.lists(st.text("xy", min_size=1, max_size=3), min_size=1, max_size=40))
def test_the_last_picture_before_a_line_end_is_kept(drawn: list[str]) -> None:
    lines = Lines(b"e")
    records = lines.feed("\r".join([*drawn, "done\n"]).encode(), 0)
    assert records[-2:] == [(b"er", drawn[-1].encode()), (b"e", b"done")]


def test_pictures_come_twice_a_second_at_most() -> None:
    lines, records = Lines(b"o"), []
    for step in range(1000):
        records += lines.feed(b"%d%%\r" % step, step / 100)
        records += lines.tick(step / 100)
    assert 18 <= len(records) <= 21
    assert lines.close(10) == [(b"or", b"999%")]


def test_an_idle_line_is_shown_and_goes_on() -> None:
    lines = Lines(b"o")
    assert lines.feed(b"waiting", 0) == []
    assert lines.tick(IDLE - 0.1) == []
    assert lines.tick(IDLE) == [(b"oc", b"waiting")]
    assert lines.tick(2 * IDLE) == []
    assert lines.feed(b"...done\nnext\n", 5) == [(b"o", b"...done"), (b"o", b"next")]


def test_a_picture_that_was_shown_while_it_waited_is_ended() -> None:
    lines = Lines(b"o")
    lines.feed(b"1%", 0)
    assert lines.tick(2) == [(b"oc", b"1%")]
    assert lines.feed(b"\r2%\n", 3) == [(b"or", b""), (b"o", b"2%")]


@given(
    st.integers(0, 3 * LONGEST), st.sampled_from([b"x", "€".encode(), b"\xff"]), st.sampled_from([b"\n", b"\r", b""])
)
def test_long_lines_are_split_between_characters(size: int, letter: bytes, end: bytes) -> None:
    text = (letter * size)[:size]
    lines = Lines(b"o")
    records = lines.feed(text + end, 0) + lines.close(0)
    assert all(len(part) <= LONGEST for _, part in records)
    assert b"".join(part for _, part in records) == text
    if letter != b"\xff":
        for kind, part in records:
            part.decode() if kind == b"oc" else None


RANKED = st.lists(
    st.tuples(st.sampled_from([None, 0, 1, 12]), st.text("ab \r\x1e[1]", max_size=8)).filter(
        lambda item: "\x1e[" not in item[1] and not item[1].endswith("\x1e")
    ),
    max_size=12,
)


@given(RANKED, st.lists(st.integers(0, 300)))
def test_copies_are_told_apart_wherever_the_prefix_stands(said: list[tuple[int | None, str]], cuts: list[int]) -> None:
    data, begun = b"", False
    wanted: dict[int | None, bytes] = {None: b"", 0: b"", 1: b"", 12: b""}
    for rank, text in said:
        # The launcher's own words begin a line; a rank's may follow anything.
        line = text.encode() + (b"\n" if rank is None or begun else b"")
        if rank is None and begun:
            continue
        data += line if rank is None else b"\x1e[%d] " % rank + line
        wanted[rank] += line
        begun = rank is not None and not line.endswith(b"\n")
    parted, got = Parted(), dict.fromkeys(wanted, b"")
    for piece in [p for part in pieces_of(data, cuts) for p in parted.feed(part)] + parted.flush():
        got[piece.rank] += piece.text
    assert got == wanted


def test_what_only_looks_like_a_prefix_is_text() -> None:
    parted = Parted()
    pieces = parted.feed(b"a \x1e[x] \x1e[") + parted.flush()
    assert b"".join(piece.text for piece in pieces) == b"a \x1e[x] \x1e["
    assert {piece.rank for piece in pieces} == {None}
