"""Known failures, from the words that torch, Python and shells really print, and words that only look like them."""

from datetime import UTC, datetime

import pytest

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import FOLDER, recognise
from torchyard.discover import load, modules
from torchyard.domain.cause import Fault
from torchyard.domain.observation import Observation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHM = (
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_15626_15269_0>: No space left on device (28)"
)
BUS = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that"
TORN = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory. This is"
FULL = "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598"
FORCED = "W0101 api.py:1047] Unable to shutdown process 23475 via 15, forcefully exiting via 9"


def evidence(port: int | None = None, shm: int | None = None, free: dict[str, int] | None = None) -> Evidence:
    return Evidence(
        observation=Observation(at=NOW, replicas=()),
        logs={},
        nproc={"worker-0": 1},
        port=port,
        shm={"worker-0": shm},
        free=free or {},
    )


def name_of(*lines: str, exception: str | None = None, code: int | None = 1, signal: int | None = None) -> str | None:
    fault = Fault(replica="worker-0", rank=0, code=code, signal=signal, exception=exception)
    found = recognise(lines, fault, evidence())
    return found.name if found else None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (FULL, "diskFull"),
        ("RuntimeError: basic_ios::clear: iostream error", "diskFull"),
        ("RuntimeError: PytorchStreamWriter failed writing file data/0: file write failed", "diskFull"),
        ("OSError: [Errno 28] No space left on device", "diskFull"),
        (SHM, "smallShm"),
        (BUS, "smallShm"),
        ("RuntimeError: unable to write to file </torch_19_1_0>: No space left on device (28)", "smallShm"),
        ("[trainer-0:5275 :0:5298] Caught signal 7 (Bus error: nonexistent physical address)", "smallShm"),
        (TORN, "tornCheckpoint"),
        (
            "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
            "tornCheckpoint",
        ),
        ("EOFError: Ran out of input", "tornCheckpoint"),
        (FORCED, "shutdownTimeout"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total", "cudaOom"),
        ("ModuleNotFoundError: No module named 'wandb.sdk'", "missingModule"),
        ("/env/bin/python: No module named trian", "missingModule"),
        ("python: can't open file '/home/ann/trian.py': [Errno 2] No such file or directory", "missingFile"),
        ("bash: run.sh: No such file or directory", "missingFile"),
        ("sh: 0: cannot open run.sh: No such file", "missingFile"),
        ("OSError: [Errno 98] Address already in use", "portTaken"),
        ("ValueError: boom", None),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", None),
        ("there is space left on the device", None),
    ],
)
def test_by_its_words(line: str, name: str | None) -> None:
    assert name_of(line) == name


@pytest.mark.parametrize(
    ("code", "signal", "lines", "name"),
    [
        (None, 7, (), "smallShm"),
        (135, None, (), "smallShm"),
        (127, None, ("run.sh: line 2: torchrun: command not found",), "missingCommand"),
        (127, None, ("sh: 1: torchrun: not found",), "missingCommand"),
        (1, None, ("run.sh: line 2: torchrun: command not found",), None),
        (127, None, ("ordinary words",), None),
        (None, 9, ("step 3",), None),
    ],
)
def test_by_how_it_ended(code: int | None, signal: int | None, lines: tuple[str, ...], name: str | None) -> None:
    assert name_of(*lines, code=code, signal=signal) == name


def test_the_error_itself_counts_before_what_was_printed_around_it() -> None:
    assert name_of(FULL, "first attempt exit 1", exception=TORN) == "tornCheckpoint"
    assert name_of("OSError: [Errno 28] No space left on device", exception=SHM) == "smallShm"


def test_sentences_hold_the_facts() -> None:
    fault = Fault(replica="worker-0", exception=SHM)
    shm = recognise((), fault, evidence(shm=64 * 1024 * 1024))
    assert shm and "/dev/shm of 64.0 MiB" in shm.match.sentence and "not the matter" in shm.match.sentence
    full = recognise((), Fault(replica="worker-0", exception=FULL), evidence(free={"checkpoints": 4096}))
    assert full and "checkpoints has 4.0 KiB free" in full.match.sentence
    gone = recognise((), Fault(replica="worker-0", exception="ModuleNotFoundError: No module named 'a.b'"), evidence())
    assert gone and "a.b" in gone.match.sentence and "install a " in gone.match.hint
    line = "server socket has failed to listen on any local network address. port: 29501, code: -98, name: EADDRINUSE"
    ours = recognise((line,), Fault(replica="worker-0"), evidence(port=29501))
    other = recognise((line,), Fault(replica="worker-0"), evidence(port=1234))
    assert ours and other and "the ranks meet" in ours.match.sentence and "--master-port" in other.match.hint


def test_every_signature_in_the_folder_is_known_once() -> None:
    found = [module.NAME for module in load(FOLDER)]
    assert f"{FOLDER}.disk_full" in modules(FOLDER)
    assert len(found) == len(set(found)) == len(modules(FOLDER)) >= 9
