"""Step two of launch and its end: starts supervisors that outlive us, and signals them."""

import errno
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from torchyard.domain.errors import Unavailable
from torchyard.domain.spec import Isolation
from torchyard.engines.engine import Busy, CannotStart, Secrets
from torchyard.engines.local import locks, records
from torchyard.engines.local.devices import Devices, release

PATIENCE = 60.0
"""Seconds in which a supervisor must have said that it started."""
LETTING_GO = 0.5
OVERDUE = 60.0
"""Seconds after the grace in which a supervisor that was asked to stop must be gone."""
_SHELL = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "USER", "TZ", "TERM", "CONDA_PREFIX", "LD_LIBRARY_PATH", "PYTHONPATH")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_FALLBACK = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "USER")
# What the interpreter, and podman or docker, need to work as they do here.
_SUPERVISORS = (
    *("PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINERS_CONF", "REGISTRY_AUTH_FILE"),
)
# The first process only forks: the supervisor is nobody's child but init's.
_SUPERVISOR = (
    "import os, sys; os.fork() and os._exit(0); os.setsid(); "
    "sys.path.insert(0, {folder!r}); from agent.supervisor import main; main({replica!r})"
)


def start(attempt: Path, devices: Devices, secrets: Secrets) -> None:
    """Start every replica that was never started nor stopped. Raises Busy; then none was started. Raises CannotStart,
    Unavailable; then some may run, and whoever gives the attempt up has to stop it."""
    facts = records.read(attempt / "attempt.json")
    if facts is None:
        raise CannotStart(f"the attempt folder {attempt} is gone or damaged")
    fresh = [name for name in facts["replicas"] if _is_fresh(attempt / name)]
    taken = _take(devices, sum(facts["devices"][name] for name in fresh), facts["key"], facts.get("workload"))
    handles = [handle for _, handle in taken]
    words: list[IO[bytes]] = []
    try:
        for name in fresh:
            count = facts["devices"][name]
            mine, taken = taken[:count], taken[count:]
            words.append(_spawn(attempt, name, facts, mine, devices.are_gpus, secrets))
        for name, word in zip(fresh, words, strict=True):
            _await_started(attempt / name, word)
    except OSError as problem:
        raise Unavailable(f"the attempt cannot be started: {problem}", "free space, then it goes on") from problem
    finally:
        release(handles)
        for word in words:
            word.close()


def _take(devices: Devices, count: int, key: str, workload: str | None) -> list[tuple[int, int]]:
    """Whoever has just ended lets go of its devices a moment after its replica's lock: a moment is waited for them."""
    deadline = time.monotonic() + LETTING_GO
    while True:
        try:
            return devices.take(count, key, workload)
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _is_fresh(replica: Path) -> bool:
    untouched = not (replica / "started").exists() and not (replica / "stop").exists()
    return untouched and not locks.is_held(replica / "replica.lock")


def _spawn(
    attempt: Path, name: str, facts: Mapping[str, Any], mine: list[tuple[int, int]], gpus: bool, secrets: Secrets
) -> IO[bytes]:
    """What comes back ends when the supervisor has made its record of the start, or has died."""
    replica = attempt / name
    record = records.read(replica / "replica.json")
    if record is None:
        raise CannotStart(f"the record of replica {name} is damaged")
    (replica / "devices").write_text(json.dumps({"devices": [index for index, _ in mine]}))
    handles = [handle for _, handle in mine]
    env = _deliver(secrets, name, Isolation(facts["isolation"]), record["env"])
    if gpus:
        # Numbered as NVML does; CUDA's own order has the fastest first.
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        env["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index, _ in mine)
    own = {key: os.environ[key] for key in _SUPERVISORS if key in os.environ}
    own |= {"TORCHYARD_ATTEMPT": facts["key"], "TORCHYARD_REPLICA": name}
    own["TORCHYARD_LOCK_FDS"] = ",".join(map(str, handles))
    code = _SUPERVISOR.format(folder=str(attempt), replica=str(replica))
    with (replica / "supervisor.err").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            pass_fds=handles,
            cwd="/",
            env=own,
        )
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(json.dumps({"env": env}).encode())
    process.wait()
    return process.stdout


def _deliver(secrets: Secrets, replica: str, isolation: Isolation, plan: Mapping[str, str]) -> dict[str, str]:
    """What of the sealed environment reaches this replica: all of it in a process, what a shell needs in a sandbox,
    only what the spec itself names in a container. The plan's variables win over the caller's."""
    caller = secrets.caller or {name: os.environ[name] for name in _FALLBACK if name in os.environ}
    match isolation:
        case Isolation.PROCESS:
            passed = set(caller)
        case Isolation.SANDBOX:
            passed = {name for name in caller if name in _SHELL or name.startswith("LC_")}
        case Isolation.CONTAINER:
            passed = set()
    kept = {name: value for name, value in caller.items() if name in passed and name not in plan}
    return kept | secrets.named.get(replica, {})


def _await_started(replica: Path, word: IO[bytes]) -> None:
    poll = select.poll()
    poll.register(word, select.POLLIN)
    said_or_died = poll.poll(PATIENCE * 1000)
    if (replica / "started").exists() or (replica / "stop").exists():
        return
    if not said_or_died or locks.is_held(replica / "replica.lock"):
        raise Unavailable(f"the supervisor of {replica.name} is slow to start")
    said = (replica / "supervisor.err").read_text(errors="replace").strip().splitlines()
    if not said or any(os.strerror(number) in said[-1] for number in _NO_ROOM):
        # On a disk that is full to the last page it cannot even say so.
        raise Unavailable(f"the supervisor of {replica.name} found no room on the disk", "free space, then it goes on")
    raise CannotStart(f"the supervisor of {replica.name} did not start: {said[-1]}")


def stop(replica: Path, grace: float, reason: str) -> bool:
    """Never let it start; if it runs, ask its supervisor to end it. A shorter grace replaces a longer one. True: it was
    asked long ago and still runs; only killing it is left. Raises Unavailable when it might still start."""
    known = records.read(replica / "stop") or {}
    now = time.monotonic()
    due = min(now + grace + OVERDUE, known.get("due", math.inf))
    if now >= due and locks.is_held(replica / "replica.lock"):
        return True
    if known.get("told") and known["grace"] <= grace:
        return False
    record = {"grace": grace, "reason": reason, "due": due, "told": False}
    problem = _write_stop(replica, record)
    deadline = now + 1.0
    while not (replica / "started").exists() and locks.is_held(replica / "replica.lock"):
        # It is just being started: wait for its name.
        if time.monotonic() > deadline:
            break
        time.sleep(0.003)
    handle = open_supervisor(replica)
    if handle is not None:
        try:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
        finally:
            os.close(handle)
        _write_stop(replica, {**record, "told": True})
    elif problem is not None and replica.exists():
        raise Unavailable(f"the stop cannot be written down: {problem.strerror}", "free space, then it goes on")
    return False


def _write_stop(replica: Path, record: dict[str, Any]) -> OSError | None:
    """None, or what kept it from being written."""
    fresh = replica / f".stop-{os.getpid()}-{threading.get_ident()}"
    try:
        fresh.write_text(json.dumps(record))
        fresh.replace(replica / "stop")
    except OSError as problem:
        with suppress(OSError):
            fresh.unlink()
        return problem
    return None


def open_supervisor(replica: Path) -> int | None:
    """A pidfd of the supervisor, if it is still the very process that wrote `started`."""
    started = records.read(replica / "started")
    if started is None:
        return _open_holder(replica / "replica.lock")
    if started["boot_id"] != records.boot_id():
        return None
    try:
        handle = os.pidfd_open(started["pid"])
    except ProcessLookupError:
        return None
    if records.start_time(started["pid"]) != started["start_time"]:
        os.close(handle)
        return None
    return handle


def _open_holder(lock: Path) -> int | None:
    """A pidfd of whoever holds the lock: the supervisor, though its record is torn."""
    pid = locks.holder(lock)
    if pid is None or pid <= 0:
        return None
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if locks.holder(lock) != pid:
        os.close(handle)
        return None
    return handle
