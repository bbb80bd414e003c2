"""Whole or not: real files of torch where it is there, crafted ones, torn, damaged and hostile ones."""

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchyard.diagnosis.checkpoint import CheckpointCheck, looks_like_checkpoint, verify, verify_folder


def snapshot(size: int = 5000, method: int = zipfile.ZIP_STORED, name: str = "archive/data.pkl") -> bytes:
    """A zip file with the names that torch.save gives."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr(name, b"\x80\x02}q\x00." * 10)
        archive.writestr("archive/data/0", bytes(range(256)) * (size // 256 + 1))
        archive.writestr("archive/version", b"3\n")
    return out.getvalue()


def tensors(hole: int = 0, extra: bytes = b"", short: int = 0) -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "BF16", "shape": [5], "data_offsets": [24 + hole, 34 + hole]},
    }
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(34 + hole) + extra
    return data[: len(data) - short]


def check(data: bytes, name: str = "snapshot.pt", deep: bool = False) -> CheckpointCheck:
    return verify(io.BytesIO(data), name, len(data), deep=deep)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_whole_file(method: int, deep: bool) -> None:
    assert check(snapshot(method=method), deep=deep) == CheckpointCheck("torch", True)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_file_whose_writer_was_killed(kept: float) -> None:
    data = snapshot(100_000)
    found = check(data[: int(len(data) * kept)])
    assert not found.complete and found.format == "torch"
    assert found.problem and found.problem.startswith("the file is cut off")


@settings(max_examples=60)
@given(st.integers(1, 10_000))
def test_no_shorter_file_is_whole(cut: int) -> None:
    data = snapshot()
    assert not check(data[: max(0, len(data) - cut)], deep=True).complete


def test_a_changed_byte_is_found_by_its_check_sum() -> None:
    data = bytearray(snapshot())
    data[2000] ^= 1
    assert check(bytes(data)).complete
    found = check(bytes(data), deep=True)
    assert not found.complete and found.problem and "archive/data/0 is damaged" in found.problem


def test_a_file_that_grew_a_hole_at_its_start() -> None:
    data = bytearray(snapshot())
    data[0:4] = b"PKxx"
    found = check(bytes(data))
    assert not found.complete and found.problem == "archive/data.pkl is not where the directory says"


def test_other_files() -> None:
    assert check(b"").problem == "the file is empty"
    assert "zeros" in str(check(bytes(5000)).problem)
    assert check(b"hello world").format == "unknown" and not check(b"hello world").complete
    pickle = check(b"\x80\x04\x95rest.")
    assert (pickle.format, pickle.complete) == ("pickle", False) and "cannot be proved" in str(pickle.problem)
    foreign = check(snapshot(name="readme.txt"))
    assert not foreign.complete and "torch.save did not write it" in str(foreign.problem)


def test_a_hostile_zip_is_refused_without_taking_memory() -> None:
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFF0, 0, 0)
    assert "too large" in str(check(b"PK\x03\x04" + bytes(100) + end).problem)
    outside = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 1000, 5000, 0)
    assert "outside" in str(check(b"PK\x03\x04" + bytes(100) + outside).problem)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(50_000_000))
    data = bytearray(bomb.getvalue())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", 10)
    assert "damaged" in str(check(bytes(data), deep=True).problem)


@settings(max_examples=120)
@given(st.binary(max_size=200), st.integers(0, 5300), st.booleans(), st.sampled_from(["a.pt", "a.safetensors"]))
def test_nothing_in_a_file_can_break_it(noise: bytes, at: int, deep: bool, name: str) -> None:
    for base in (snapshot(), tensors()):
        data = bytearray(base)
        data[at : at + len(noise)] = noise
        check(bytes(data), name, deep)
    check(noise, name, deep)


def test_safetensors() -> None:
    name = "model.safetensors"
    assert check(tensors(), name) == CheckpointCheck("safetensors", True)
    assert "cut off: 3 bytes" in str(check(tensors(short=3), name).problem)
    assert "hole" in str(check(tensors(hole=4), name).problem)
    assert "after the last tensor" in str(check(tensors(extra=b"x"), name).problem)
    assert "within its header" in str(check(tensors()[:40], name).problem)
    assert "within its header" in str(check(tensors()[:4], name).problem)
    assert "makes no sense" in str(check(b"\xff" * 100, name).problem)
    deep = b"[" * 200_000
    assert "not readable" in str(check(struct.pack("<Q", len(deep)) + deep, name).problem)
    wrong = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
    assert "'a' makes no sense" in str(check(struct.pack("<Q", len(wrong)) + wrong + bytes(8), name).problem)


def test_a_folder_of_parts() -> None:
    metadata = b"\x80\x04\x8c\x0c__0_0.distcp\x94\x8c\x0c__1_0.distcp\x94."
    both = frozenset({".metadata", "__0_0.distcp", "__1_0.distcp"})
    assert verify_folder(io.BytesIO(metadata), both) == CheckpointCheck("dcp", True)
    missing = verify_folder(io.BytesIO(metadata), both - {"__1_0.distcp"})
    assert missing.problem == "1 of 2 parts are missing: __1_0.distcp"
    assert verify_folder(io.BytesIO(metadata[:-1]), both).problem == ".metadata is cut off"
    assert verify_folder(io.BytesIO(b""), both).problem == ".metadata is empty"
    assert verify_folder(io.BytesIO(b"x."), both).problem == ".metadata names no parts"
    far = bytes(1024 * 1024 - 7) + b"__7_0.distcp."
    assert "__7_0.distcp" in str(verify_folder(io.BytesIO(far), both).problem)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("snapshot.pt", True),
        ("a/b/Epoch.PTH", True),
        ("last.ckpt", True),
        ("model.safetensors", True),
        ("pytorch_model-00001-of-00002.bin", True),
        ("train.bin", False),
        ("snapshot.pt.tmp", False),
        (".snapshot.pt", False),
        ("a.pt/readme", False),
    ],
)
def test_names_of_checkpoints(path: str, expected: bool) -> None:
    assert looks_like_checkpoint(path) is expected


@pytest.mark.torch
def test_what_torch_itself_writes(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "snapshot.pt"
    torch.save({"weights": torch.arange(100_000), "bias": torch.ones(3), "epoch": 4}, path)
    whole = path.read_bytes()
    assert check(whole, deep=True) == CheckpointCheck("torch", True)
    assert not check(whole[: len(whole) // 2]).complete
    torch.save({"weights": torch.ones(3)}, path, _use_new_zipfile_serialization=False)
    old = check(path.read_bytes())
    assert (old.format, old.complete) == ("torch-legacy", False) and "cannot be proved" in str(old.problem)


@pytest.mark.torch
def test_check_sums_that_torch_left_out_are_not_compared(tmp_path: Path) -> None:
    import torch

    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"weights": torch.arange(1000)}, tmp_path / "fast.pt")
    finally:
        torch.serialization.set_crc32_options(before)
    assert check((tmp_path / "fast.pt").read_bytes(), deep=True) == CheckpointCheck("torch", True)
