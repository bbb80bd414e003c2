"""torchrun's copies of a rank's lines are dropped, and nothing else is, however the pipe is cut."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from torchyard.agent.follow import RankFile
from torchyard.agent.tee import Copies

WORDS = st.sampled_from(["rank", "rank says", "loss: 0.1", "x", "ü", "\r\n", "\n", "\r", ""])


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=12), st.lists(st.integers(0, 30), max_size=6))
def test_whatever_a_rank_says(out: list[str], err: list[str], cuts: list[int]) -> None:
    """Its lines and broken-off lines, copied as text; then the launcher's own words on the same line."""
    with TemporaryDirectory() as folder:
        files = [write(Path(folder), "stdout.log", b"o", out), write(Path(folder), "stderr.log", b"e", err)]
        copies = Copies(b"o")
        foreign = b""
        for line in "".join(out).replace("\r\n", "\n").replace("\r", "\n").splitlines(keepends=True):
            for start, piece in pieces_of(line.encode(), cuts):
                foreign += copies.foreign(piece, start == 0, files)
            if not line.endswith("\n"):
                foreign += copies.foreign(b"!the launcher's own\n", False, files)
                assert foreign == b"!the launcher's own\n"
                foreign = b""
        assert foreign + copies.flush() == b""
        copies.close()


def pieces_of(data: bytes, cuts: list[int]) -> list[tuple[int, bytes]]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [(start, data[start:end]) for start, end in pairwise(edges)]


def write(folder: Path, name: str, kind: bytes, words: list[str]) -> RankFile:
    (folder / name).write_bytes("".join(words).encode())
    return RankFile(str(folder / name), "run/attempt_0/0", kind, -1, 0)


def test_streams_on_one_pipe_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "stdout.log").write_bytes(b"one\nbad \xff\xff bytes\nthree\n")
    (tmp_path / "stderr.log").write_bytes(b"one more\n")
    files = [
        RankFile(str(tmp_path / "stdout.log"), "run/attempt_0/0", b"o", -1, 0),
        RankFile(str(tmp_path / "stderr.log"), "run/attempt_0/0", b"e", -1, 0),
    ]
    copies = Copies(b"o")
    said = [b"one more\n", b"one\n", "bad \ufffd bytes\n".encode(), b"three\n"]
    assert [copies.foreign(text, True, files) for text in said[:2]] == [b"", b""]
    copies.foreign(said[2], True, files)
    assert copies.foreign(said[3], True, files) == b""
    copies.close()
