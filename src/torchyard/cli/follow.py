"""Following a workload to its end: its log and its changes on the screen, its exit code as ours.

Two threads read the server's streams; this one shows what they bring and listens for Ctrl-C.
"""

import contextlib
import os
import queue
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torchyard.cli.failure import OWN
from torchyard.cli.output import coloured
from torchyard.cli.screen import Screen, progress_bar
from torchyard.cli.session import Session
from torchyard.client import logs, workloads
from torchyard.client.logs import LogChoice
from torchyard.client.stream import ServerEvent
from torchyard.domain.errors import NotFound, TorchyardError

STOPPED = 130
TWICE_SECONDS = 3.0
"""A second Ctrl-C within this time stops the workload."""
LATE_SECONDS = 5.0
"""How long the other stream may bring nothing when the workload is over and one stream has ended."""
_TOLD_BY_PHASE = ("Phase", "AttemptFailed")
_GONE = ("Deleting", "Deleted")
_AT_ONCE = 500
_HELD = 5000

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Came:
    """What a stream brought: an event, or (event None) its end or failure; `away`: the server went or came back."""

    stream: str
    event: ServerEvent | None = None
    error: TorchyardError | None = None
    away: bool | None = None


@dataclass(slots=True)
class Story:
    """What has been told of the workload so far, so that nothing is told twice."""

    name: str
    attempt: int = 1
    told: tuple[str, str] | None = None
    ended: set[str] = field(default_factory=set)
    end: Row | None = None
    progress: Row | None = None
    gone: bool = False
    error: TorchyardError | None = None

    @property
    def over(self) -> bool:
        """Both streams have ended, or something broke."""
        return self.error is not None or self.gone or self.ended >= {"log", "change"}


def open_screen(*, apart: bool = True, timestamps: bool = False, several: bool = False) -> Screen:
    """A screen on our stdout and stderr."""
    live = sys.stdout.isatty() and sys.stderr.isatty() and coloured_terminal()
    return Screen(
        out=sys.stdout,
        err=sys.stderr,
        live=live,
        width=lambda: shutil.get_terminal_size().columns,
        colour=coloured(sys.stdout) and coloured(sys.stderr),
        several=several,
        timestamps=timestamps,
        apart=apart,
    )


def coloured_terminal() -> bool:
    """A terminal that can move its cursor."""
    return os.environ.get("TERM", "dumb") not in ("", "dumb")


def follow(session: Session, row: Row, screen: Screen, *, log: bool = True, stops: bool = True) -> int:
    """Show a workload until it is over; answers the exit code of `run` and `wait`. `stops`: Ctrl-C twice stops it."""
    events: queue.Queue[Came] = queue.Queue(_HELD)
    story = Story(row["name"])
    _watch(session, row["id"], events, log=log)
    if not log:
        story.ended.add("log")
    while True:
        try:
            _show(events, story, screen)
            return _close(session, row, story, screen)
        except KeyboardInterrupt:
            if not stops:
                screen.say(f"{story.name} goes on")
                return STOPPED
            if not _stops(session, row, screen):
                return STOPPED


def _watch(session: Session, identity: str, events: "queue.Queue[Came]", *, log: bool) -> None:
    patience = float("inf")

    def read_log(away: Callable[[bool], None]) -> Iterator[ServerEvent]:
        return logs.read(session.another(), identity, LogChoice(attempt=0, follow=True), away, patience)

    def read_changes(away: Callable[[bool], None]) -> Iterator[ServerEvent]:
        return workloads.changes(session.another(), identity, away, patience)

    for name, read in (("log", read_log), ("change", read_changes)):
        if name == "log" and not log:
            continue
        threading.Thread(target=_pump, args=(name, read, events), daemon=True).start()


def _pump(
    name: str, read: Callable[[Callable[[bool], None]], Iterator[ServerEvent]], events: "queue.Queue[Came]"
) -> None:
    try:
        for event in read(lambda away: events.put(Came(name, away=away))):
            events.put(Came(name, event))
        events.put(Came(name))
    except TorchyardError as error:
        events.put(Came(name, error=error))


def _show(events: "queue.Queue[Came]", story: Story, screen: Screen) -> None:
    deadline: float | None = None
    while not story.over:
        try:
            came = events.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return
        _take(came, story, screen)
        for _ in range(_AT_ONCE):
            if events.empty():
                break
            _take(events.get(), story, screen)
        screen.bar(progress_bar(story.progress or {}, screen.width()))
        screen.flush()
        if story.ended and story.end is not None:
            deadline = time.monotonic() + LATE_SECONDS


def _take(came: Came, story: Story, screen: Screen) -> None:
    if came.away is not None:
        if came.stream == "change":
            screen.say(_away(story.name, came.away))
    elif came.event is None:
        story.ended.add(came.stream)
        story.gone = story.gone or isinstance(came.error, NotFound)
        story.error = story.error or (None if story.gone else came.error)
    elif came.event.name == "line":
        screen.line(logs.line_of(came.event))
    elif came.event.name == "end":
        story.ended.add(came.stream)
        story.end = came.event.data
    else:
        _tell(came.event, story, screen)


def _tell(event: ServerEvent, story: Story, screen: Screen) -> None:
    match event.name:
        case "progress":
            story.progress = event.data.get("progress", event.data)
        case "workload":
            _tell_phase(event.data, story, screen)
        case "event" if event.data.get("type") == "Warning" and event.data.get("reason") not in _TOLD_BY_PHASE:
            screen.say(f"{story.name}: {event.data.get('message', '')}")


def _tell_phase(row: Row, story: Story, screen: Screen) -> None:
    phase, why, attempt = row["phase"], row.get("phaseMessage") or "", int(row.get("attempt") or 0)
    story.progress = row.get("progress") or story.progress
    if attempt > story.attempt:
        if story.told is None or story.told[0] != "Resuming":
            screen.say(f"{story.name}: attempt {attempt}")
        story.attempt = attempt
        story.progress = None
        story.told = None
    waits = phase in ("Pending", "Resuming", "Degraded", "Stopping", "Unknown")
    if waits and why and (phase, why) != story.told:
        story.told = (phase, why)
        screen.say(f"{story.name} is {phase.lower()}: {why}")


def _close(session: Session, row: Row, story: Story, screen: Screen) -> int:
    screen.close()
    if story.error is not None:
        raise story.error
    if story.gone or (story.end or {}).get("phase") == "Deleted":
        screen.say(f"{story.name} was deleted")
        return STOPPED
    return tell_end(session, row, screen)


def tell_end(session: Session, row: Row, screen: Screen) -> int:
    """The last sentence about a workload that is over, and its exit code."""
    final = workloads.get(session.server, row["id"])
    verdict: Row = {}
    if final["phase"] == "Failed":
        # The exit code is the training's also where nobody can explain it.
        with contextlib.suppress(TorchyardError):
            verdict = workloads.explain(session.server, row["id"])
    screen.say(end_sentence(final, verdict))
    return exit_code(final)


def end_sentence(row: Row, verdict: Row) -> str:
    """`ddp completed`, or why it did not."""
    name, phase = row["name"], row["phase"]
    if phase == "Failed":
        why = verdict.get("sentence") or row.get("phaseMessage") or "see `torchyard explain`"
        next_step = verdict.get("nextStep")
        told = why if why.startswith(name) else f"{name} failed: {why}"
        return told + (f"\n  next: {next_step}" if next_step else "")
    if phase in _GONE:
        return f"{name} was deleted"
    why = row.get("phaseMessage") or ""
    if phase == "Stopped" and why.startswith("stopped"):
        return f"{name} was {why}"
    return f"{name} {phase.lower()}" + (f": {why}" if why else "")


def exit_code(row: Row) -> int:
    """The exit code that a workload which is over gives to whoever waited for it."""
    code = row.get("exitCode")
    if code is not None:
        return int(code)
    if row["phase"] in _GONE:
        return STOPPED
    return {"Completed": 0, "Stopped": STOPPED}.get(row["phase"], OWN)


def _away(name: str, gone: bool) -> str:
    if gone:
        return f"the server does not answer; {name} goes on without it. Waiting for it (torchyard server start)"
    return "the server is back"


def _stops(session: Session, row: Row, screen: Screen) -> bool:
    """The first Ctrl-C was pressed: detach, unless a second one comes in time. True: it was asked to stop."""
    name = row["name"]
    with _second_interrupt() as came:
        screen.bar("")
        screen.flush()
        screen.say(
            f"\ndetached; {name} goes on. Ctrl-C again within {TWICE_SECONDS:g} s stops it\n"
            f"  torchyard logs {name} -f\n  torchyard stop {name}"
        )
        screen.flush()
        if not came(TWICE_SECONDS):
            return False
    screen.say(f"stopping {name}")
    screen.flush()
    workloads.stop(session.server, row)
    return True


@contextlib.contextmanager
def _second_interrupt() -> Iterator[Callable[[float], bool]]:
    """Ctrl-C raises nothing in here: at whatever moment it comes, whoever asks then or later is told."""
    reader, writer = os.pipe()
    before = signal.signal(signal.SIGINT, lambda *_: os.write(writer, b"x"))
    try:
        yield lambda seconds: bool(select.select([reader], [], [], seconds)[0])
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(reader)
        os.close(writer)
