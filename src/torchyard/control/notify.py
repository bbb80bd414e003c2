"""Tells a workload's receiver (a command or a webhook) that it ended, failed or started waiting. At least once."""

import asyncio
import json
import os
import urllib.request
from http.client import HTTPException

from torchyard.control.turn import turn
from torchyard.control.yard import Yard
from torchyard.domain.decision import Delivered
from torchyard.domain.errors import NotFound
from torchyard.domain.spec import Notify
from torchyard.domain.workload import Notice, Workload

TIMEOUT = 30.0
_KEPT = (
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
)
"""What a command gets of the server's environment, which may hold secrets."""
_posting: dict[tuple[str, Notice], asyncio.Task[None]] = {}


def post(yard: Yard, workload_id: str, notice: Notice) -> None:
    """Deliver in the background; the notice stays remembered until it was."""
    key = (workload_id, notice)
    if key not in _posting:
        task = asyncio.create_task(_deliver(yard, workload_id, notice))
        _posting[key] = task
        task.add_done_callback(lambda _: _posting.pop(key, None))


async def _deliver(yard: Yard, workload_id: str, notice: Notice) -> None:
    try:
        async with turn(yard, workload_id) as mine:
            workload = mine.workload
        receiver = workload.submission.torchyard.notify
        problem = await _send(receiver, workload, notice) if receiver else None
        async with turn(yard, workload_id) as mine:
            await mine.apply(Delivered(notice=notice, problem=problem))
    except NotFound:
        return


async def _send(receiver: Notify, workload: Workload, notice: Notice) -> str | None:
    """None, or the sentence that says why the receiver did not take it."""
    facts = {
        "workload": workload.name,
        "id": workload.id,
        "project": workload.project,
        "phase": workload.phase.value,
        "kind": notice.kind,
        "sentence": notice.sentence,
        "at": notice.at.isoformat(),
    }
    problems = []
    if receiver.command:
        problems.append(await _run(receiver.command, facts))
    if receiver.webhook:
        problems.append(await asyncio.to_thread(_call, receiver.webhook, facts))
    return "; ".join(p for p in problems if p) or None


async def _run(command: str, facts: dict[str, str]) -> str | None:
    own = {key: os.environ[key] for key in _KEPT if key in os.environ}
    # A sentence may quote a log, and an environment holds no NUL.
    env = {**own, **{f"TORCHYARD_NOTIFY_{key.upper()}": value.replace("\0", "") for key, value in facts.items()}}
    quiet = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_shell(command, env=env, stdin=quiet, stdout=quiet, stderr=quiet)
    except OSError as problem:
        return f"the notify command could not be started: {problem.strerror}"
    try:
        code = await asyncio.wait_for(process.wait(), TIMEOUT)
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"the notify command did not end within {TIMEOUT:.0f} s"
    return f"the notify command ended with exit {code}" if code else None


def _call(url: str, facts: dict[str, str]) -> str | None:
    body = json.dumps(facts).encode()
    try:
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIMEOUT):
            return None
    except (OSError, ValueError, HTTPException) as problem:
        return f"the notify webhook did not answer: {problem}"
