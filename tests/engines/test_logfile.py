"""The log is read where it lies: from any position, whole records only, whatever stands in it."""

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.places import LocalPlace, over
from torchyard.domain.observation import LogLine
from torchyard.engines.local import logfile

MOMENT = 1764590400123456
texts = st.binary(max_size=60).map(lambda data: data.replace(b"\n", b""))
kinds = st.sampled_from([b"o", b"e", b"or", b"oc", b"t"])
ranks = st.one_of(st.just(b"-"), st.integers(0, 99).map(lambda n: b"%d" % n))
records = st.lists(st.tuples(ranks, kinds, texts), max_size=8)


def line(rank: bytes, kind: bytes, text: bytes) -> bytes:
    return b"%d %b %b %b\n" % (MOMENT, rank, kind, text)


def read(path: Path, after: int = 0) -> list[LogLine]:
    return list(logfile.read(path, after, 3, "worker-1"))


@settings(max_examples=50)
@given(records, st.integers(0, 60))
def test_every_position_gives_what_comes_behind_it(said: list[tuple[bytes, bytes, bytes]], torn: int) -> None:
    data = b"".join(line(*record) for record in said)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(data + line(b"-", b"o", b"torn")[:torn].rstrip(b"\n"))
        seen = read(path)
        assert [(b"-" if r.rank is None else b"%d" % r.rank, r.kind.encode(), r.text) for r in seen] == [
            (rank, kind, text.decode("utf-8", "replace")) for rank, kind, text in said
        ]
        assert logfile.size(path) == len(data)
        ends = [r.cursor for r in seen]
        for after in range(len(data) + 1):
            assert read(path, after) == [r for r, begin in zip(seen, [0, *ends], strict=False) if begin >= after]


def test_a_record(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(line(b"3", b"er", "ä b  c ".encode()))
    (seen,) = read(path)
    assert (seen.attempt, seen.replica, seen.rank, seen.kind, seen.text) == (3, "worker-1", 3, "er", "ä b  c ")
    assert (seen.at.timestamp(), seen.at.utcoffset()) == (1764590400.123456, timedelta(0))


def test_records_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sizes = [10, logfile.CHUNK - 30, logfile.CHUNK * 2 + 5, 0, 17]
    path.write_bytes(b"".join(line(b"0", b"o", b"x" * size) for size in sizes) + b"7" * logfile.CHUNK * 2)
    seen = read(path)
    assert [len(r.text) for r in seen] == sizes
    assert logfile.size(path) == seen[-1].cursor
    assert read(path, seen[1].cursor + 1) == seen[3:]


@pytest.mark.parametrize("junk", [b"", b"\0" * 4096, b"x y z w", b"12 0", b"9" * 40 + b" 0 o text", b"-1 0 o x"])
def test_what_is_no_record_is_passed_over(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(line(b"0", b"o", b"before") + junk + b"\n" + line(b"0", b"o", b"after"))
    assert [r.text for r in read(path)] == ["before", "after"]


def test_no_log_yet(tmp_path: Path) -> None:
    assert read(tmp_path / "log") == []
    assert logfile.size(tmp_path / "log") == 0


def test_a_position_behind_the_end_waits_for_the_next_record(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(line(b"0", b"o", b"first"))
    assert read(path, 10_000) == []


@pytest.mark.anyio
async def test_a_long_log_comes_whole(here: LocalPlace) -> None:
    engine = here.engine()
    handle = await here.launch(engine, here.run("sh", "-c", "seq 1 20000"))
    said = [r.text async for r in engine.logs(handle, "worker-0", 0, follow=True)]
    await over(engine, handle)
    assert said == [str(number) for number in range(1, 20001)]
