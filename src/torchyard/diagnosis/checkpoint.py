"""Is this checkpoint whole? Told from its bytes, without torch and without unpickling anything.

Files may be hostile: what is read into memory is bounded, whatever sizes a file claims.
"""

import re
from dataclasses import dataclass

from torchyard.diagnosis import archive, safetensors
from torchyard.diagnosis.file import CHUNK, Readable

SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors")
_BIN = re.compile(
    r"^(?:pytorch_model|adapter_model|model|optimizer|scheduler|random_states|training_args|consolidated|diffusion)",
    re.IGNORECASE,
)
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""torch's magic number, pickled: the first bytes of what torch before 1.6 wrote."""
_UNPROVEN = "a pickle does not say where it ends: whether it is whole cannot be proved"
_METADATA_LIMIT = 256 * 1024 * 1024
_PART = re.compile(rb"__\d{1,7}_\d{1,7}\.distcp")
_PART_MAX = 32


@dataclass(frozen=True, slots=True)
class CheckpointCheck:
    """`complete` means proved to be whole; `problem` says why it is not, or cannot be."""

    format: str
    complete: bool
    problem: str | None = None


def looks_like_checkpoint(path: str) -> bool:
    """By its name: *.pt *.pth *.ckpt *.safetensors, and *.bin with a name that libraries give to weights."""
    name = path.rpartition("/")[2]
    if name.startswith("."):
        return False
    lower = name.lower()
    return lower.endswith(SUFFIXES) or (lower.endswith(".bin") and _BIN.match(name) is not None)


def verify(file: Readable, name: str, size: int, *, deep: bool = False) -> CheckpointCheck:
    """What the file is and whether it is whole. `deep` also reads every byte against its check sums."""
    kind = _format_by_name(name)
    try:
        if size <= 0:
            return CheckpointCheck(kind, False, "the file is empty")
        file.seek(0)
        head = file.read(32)
        if kind == "safetensors":
            return CheckpointCheck(kind, *_verdict(safetensors.problem(file, size)))
        if head.startswith(b"PK"):
            found = archive.check(file, size, deep=deep)
            return CheckpointCheck(found.format, *_verdict(found.problem))
        return _other(head, kind)
    except OSError as error:
        return CheckpointCheck(kind, False, f"the file cannot be read: {error.strerror or error}")


def _format_by_name(name: str) -> str:
    return "safetensors" if name.lower().endswith(".safetensors") else "unknown"


def _verdict(problem: str | None) -> tuple[bool, str | None]:
    return problem is None, problem


def _other(head: bytes, kind: str) -> CheckpointCheck:
    if head.startswith(_LEGACY):
        return CheckpointCheck("torch-legacy", False, _UNPROVEN)
    if len(head) >= 2 and head[0] == 0x80 and head[1] in range(2, 6):
        return CheckpointCheck("pickle", False, _UNPROVEN)
    if not head.strip(b"\0"):
        return CheckpointCheck(kind, False, "the file begins with zeros: its content never reached the disk")
    return CheckpointCheck(kind, False, "no format of checkpoints that can be checked")


def verify_folder(metadata_file: Readable, names: frozenset[str]) -> CheckpointCheck:
    """A folder written by torch.distributed.checkpoint: `.metadata` comes last and names every part."""
    kind = "dcp"
    try:
        metadata_file.seek(0)
        wanted, last, length = _parts(metadata_file)
    except OSError as error:
        return CheckpointCheck(kind, False, f".metadata cannot be read: {error.strerror or error}")
    if length == 0:
        return CheckpointCheck(kind, False, ".metadata is empty")
    if length > _METADATA_LIMIT:
        return CheckpointCheck(kind, False, ".metadata is too large to be checked")
    if last != b".":
        return CheckpointCheck(kind, False, ".metadata is cut off")
    if not wanted:
        return CheckpointCheck(kind, False, ".metadata names no parts")
    missing = sorted(wanted - names)
    if missing:
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        return CheckpointCheck(kind, False, f"{len(missing)} of {len(wanted)} parts are missing: {shown}")
    return CheckpointCheck(kind, True)


def _parts(file: Readable) -> tuple[set[str], bytes, int]:
    """Names of parts in the bytes of a pickle, its last byte and its length."""
    wanted: set[str] = set()
    tail, last, length = b"", b"", 0
    while length <= _METADATA_LIMIT:
        chunk = file.read(CHUNK)
        if not chunk:
            break
        length += len(chunk)
        last = chunk[-1:]
        wanted.update(name.decode() for name in _PART.findall(tail + chunk))
        tail = (tail + chunk)[-_PART_MAX:]
    return wanted, last, length
