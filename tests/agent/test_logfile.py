"""The log is true, also when the disk is full."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from torchyard.agent.logfile import LogFile, Record


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes: to a writer this is a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def opened(folder: Path) -> tuple[LogFile, int]:
    fd = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC)
    return LogFile(fd), fd


def line(number: int) -> Record:
    return Record(b"0", b"o", b"line %d" % number)


def said(folder: Path) -> list[str]:
    data = (folder / "log").read_bytes()
    assert data.endswith(b"\n") or not data
    return [record.split(b" ", 1)[1].decode() for record in data.split(b"\n")[:-1]]


def test_a_record_is_one_line(tmp_path: Path) -> None:
    log, fd = opened(tmp_path)
    log.write([Record(b"-", b"e", b"two  spaces"), Record(b"11", b"or", b"")], 1700000000.25)
    os.close(fd)
    want = b"1700000000250000 - e two  spaces\n1700000000250000 11 or \n"
    assert (tmp_path / "log").read_bytes() == want


def test_what_does_not_fit_is_counted_and_marked(tmp_path: Path) -> None:
    log, fd = opened(tmp_path)
    with room(100):
        log.write([line(number) for number in range(10)], 1)
        assert said(tmp_path) == [f"0 o line {number}" for number in range(3)]
        log.write([line(10)], 5)
    assert log.lost == 8
    log.write([line(11)], 5.05)  # not tried again so soon
    log.write([line(12)], 9)
    os.close(fd)
    assert said(tmp_path)[3:] == ["- t 9 log lines were lost here: no space on the disk", "0 o line 12"]
    assert log.lost == 9


def test_the_end_is_tried_even_at_once(tmp_path: Path) -> None:
    log, fd = opened(tmp_path)
    with room(0):
        log.write([line(1)], 1)
    log.write([], 1, last=True)
    os.close(fd)
    assert said(tmp_path) == ["- t 1 log line was lost here: no space on the disk"]


def test_a_line_whose_rest_was_lost_is_ended(tmp_path: Path) -> None:
    log, fd = opened(tmp_path)
    log.write([Record(b"3", b"ec", b"begun")], 1)
    with room(0):
        log.write([Record(b"3", b"e", b" and lost")], 2)
    log.write([Record(b"3", b"e", b"next")], 9)
    os.close(fd)
    assert said(tmp_path) == [
        "3 ec begun",
        "3 e ",
        "- t 1 log line was lost here: no space on the disk",
        "3 e next",
    ]


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 30)), max_size=8))
def test_nothing_is_lost_uncounted(steps: list[tuple[int, int]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        log, fd = opened(folder)
        number = 0
        for now, (size, count) in enumerate(steps):
            with room(size):
                log.write([line(number + index) for index in range(count)], now * 10.0)
            number += count
        log.write([], 1000, last=True)
        os.close(fd)
        records = said(folder)
    lines = [int(text.rsplit(" ", 1)[1]) for text in records if text.startswith("0 o ")]
    marks = [int(text.split()[2]) for text in records if text.startswith("- t ")]
    assert lines == sorted(set(lines))
    assert len(lines) + sum(marks) == number
    assert sum(marks) == log.lost
