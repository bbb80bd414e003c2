"""Whatever an archive holds, what is let through stays in its folder."""

import errno
import io
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from torchyard.domain.archive import checked

_PATHS = st.lists(st.sampled_from(["a", "b", "c", "..", ".", ""]), min_size=1, max_size=5).map("/".join)
_MEMBERS = st.lists(st.tuples(st.sampled_from(["file", "folder", "link", "hard"]), _PATHS, _PATHS), max_size=8)
_TYPES = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}


def member(kind: str, name: str, aim: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = _TYPES[kind], 0o755
    info.linkname = aim if kind in ("link", "hard") else ""
    info.size = 1 if kind == "file" else 0
    return info


def pack(members: list[tuple[str, str, str]]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for one in members:
            tar.addfile(member(*one), io.BytesIO(b"x"))
    packed.seek(0)
    return packed


def in_a_ring(path: Path) -> bool:
    """Links that lead nowhere: what resolve() makes of them is no place."""
    try:
        path.stat()
    except OSError as problem:
        return problem.errno == errno.ELOOP
    return False


@settings(max_examples=300)
@given(_MEMBERS)
@example([("folder", "a/b", ""), ("link", "a/b/c", "../.."), ("file", "a/b/c/a", "")])
@example([("link", "a/b/c", "../.."), ("link", "b", "a/b/c/../a"), ("file", "b", "")])
@example([("link", "a", "."), ("link", "a/b", ".."), ("file", "b/c", "")])
@example([("link", "./a", ".."), ("file", "a/b", "")])
@example([("link", "./c/.", "c")])
def test_nothing_is_written_outside(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, str, str]]
) -> None:
    place = tmp_path_factory.mktemp("outside")
    inside = place / "deep" / "inside"
    inside.mkdir(parents=True)
    with tarfile.open(fileobj=pack(members)) as tar, suppress(tarfile.TarError, OSError):
        tar.extraction_filter = lambda one, _: one
        for one in checked(tar):
            tar.extract(one, inside)
    assert {path.name for path in (*place.iterdir(), *(place / "deep").iterdir())} == {"deep", "inside"}
    for path in inside.rglob("*"):
        assert in_a_ring(path) or path.resolve().is_relative_to(inside)


@pytest.mark.parametrize(
    ("kind", "name", "aim", "reason"),
    [
        ("file", "../x", "", "leads out"),
        ("file", "/x", "", "leads out"),
        ("link", "x", "/etc", "leads out"),
        ("link", "x", "..", "leads out"),
        ("link", "a/x", "b/../../y", "leads out"),
        ("hard", "x", "y", "no plain file"),
        ("link", ".", "a", "twice"),
    ],
)
def test_what_is_refused_is_named(kind: str, name: str, aim: str, reason: str) -> None:
    with tarfile.open(fileobj=pack([(kind, name, aim)])) as tar, pytest.raises(tarfile.TarError, match=reason):
        list(checked(tar))


def test_what_code_has_is_taken() -> None:
    members = [("folder", "pkg", ""), ("file", "pkg/a.py", ""), ("link", "pkg/b.py", "a.py"), ("link", "c", "pkg/a.py")]
    members += [("link", "pkg/up", "../c"), ("folder", "./d", "")]
    with tarfile.open(fileobj=pack(members)) as tar:
        assert len(list(checked(tar))) == len(members)
