"""A folder is packed the same way every time, without what it should leave behind."""

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchyard.client.code import pack
from torchyard.domain.errors import Invalid, TooLarge


def fill(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(folder: Path) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(pack(folder).content), mode="r:gz") as archive:
        return archive.getnames()


def test_equal_folders_have_equal_hashes(tmp_path: Path) -> None:
    files = {"train.py": "x", "lib/a.py": "y", "lib/b.py": "z"}
    one = fill(tmp_path / "one", files)
    two = fill(tmp_path / "other", dict(reversed(files.items())))
    os.utime(two / "train.py", (1, 1))
    assert pack(one) == pack(two)


def test_content_and_name_change_the_hash(tmp_path: Path) -> None:
    folder = fill(tmp_path, {"train.py": "x"})
    before = pack(folder).digest
    (folder / "train.py").write_text("y")
    after = pack(folder).digest
    (folder / "train.py").rename(folder / "main.py")
    assert len({before, after, pack(folder).digest}) == 3


def test_executable_bit_is_kept(tmp_path: Path) -> None:
    folder = fill(tmp_path, {"run.sh": "#!/bin/sh"})
    (folder / "run.sh").chmod(0o700)
    with tarfile.open(fileobj=io.BytesIO(pack(folder).content)) as archive:
        entry = archive.getmember("run.sh")
    assert (entry.mode, entry.mtime, entry.uid, entry.gid, entry.uname) == (0o755, 0, 0, 0, "")


def test_what_never_travels(tmp_path: Path) -> None:
    folder = fill(
        tmp_path, {"a.py": "", ".git/config": "", "lib/__pycache__/a.pyc": "", ".venv/bin/python": "", "lib/b.py": ""}
    )
    assert names(folder) == ["a.py", "lib", "lib/b.py"]


def test_gitignore_is_honoured(tmp_path: Path) -> None:
    folder = fill(
        tmp_path, {".gitignore": "data/\n*.pt\n!keep.pt\n", "a.pt": "", "keep.pt": "", "data/x": "", "t.py": ""}
    )
    assert names(folder) == [".gitignore", "keep.pt", "t.py"]


def test_torchyardignore_goes_before_gitignore(tmp_path: Path) -> None:
    folder = fill(tmp_path, {".gitignore": "a.txt\n", ".torchyardignore": "b.txt\n", "a.txt": "", "b.txt": ""})
    assert names(folder) == [".gitignore", ".torchyardignore", "a.txt"]


def test_links_stay_inside(tmp_path: Path) -> None:
    folder = fill(tmp_path / "code", {"lib/a.py": "x"})
    (tmp_path / "secret").write_text("s")
    (folder / "near").symlink_to("lib/a.py")
    (folder / "far").symlink_to("../secret")
    (folder / "absolute").symlink_to(folder / "lib" / "a.py")
    (folder / "lib" / "up").symlink_to("../near")
    assert names(folder) == ["lib", "lib/a.py", "lib/up", "near"]


def test_too_large_names_the_largest(tmp_path: Path) -> None:
    folder = fill(tmp_path, {"small.py": "x", "big.bin": "b" * 3000, "bigger.bin": "b" * 4000})
    with pytest.raises(TooLarge) as caught:
        pack(folder, limit=5000)
    assert caught.value.details is not None
    assert "bigger.bin (0.0 MB), big.bin" in caught.value.details


def test_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="is not a folder"):
        pack(tmp_path / "nothing")


def test_special_files_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    fill(tmp_path, {"a": ""})
    assert names(tmp_path) == ["a"]
    assert str(pack(tmp_path).left_out) == "1 left out (1 no plain file)"


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    folder = fill(tmp_path / "code", {"a.py": "", "lib/b.py": "", ".git/config": "", "data/x": "", "data/y": ""})
    assert str(pack(folder).left_out) == ""
    fill(folder, {".gitignore": "data/\n*.pt\n", "a.pt": ""})
    (folder / "lib" / "far").symlink_to("/etc/passwd")
    assert pack(folder).files == 3
    assert str(pack(folder).left_out) == "3 left out (2 ignored by .gitignore, 1 link that leads out)"


_NAMES = st.text("abcXYZ09._-ä", min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..", ".gitignore", ".torchyardignore")
)


@settings(max_examples=30)
@given(st.dictionaries(_NAMES, st.binary(max_size=50), max_size=6))
def test_what_is_packed_is_what_was_there(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    folder = tmp_path_factory.mktemp("code")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    packed = pack(folder)
    with tarfile.open(fileobj=io.BytesIO(packed.content)) as archive:
        found = {}
        for entry in archive.getmembers():
            reader = archive.extractfile(entry)
            assert reader is not None
            found[entry.name] = reader.read()
    assert found == files
    assert packed.files == len(files)
