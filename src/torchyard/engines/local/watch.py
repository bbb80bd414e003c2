"""Notices that attempts change: at once when a supervisor ends, soon when one writes a record."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from torchyard.engines.local.supervise import open_supervisor

INTERVAL = 0.25
_RECORDS = ("started", "status", "exit", "stop")


class Watch:
    """The attempts that were observed and were not over."""

    def __init__(self) -> None:
        self._attempts: dict[str, Path] = {}
        self._pidfds: dict[str, dict[str, int]] = {}
        self._marks: dict[str, tuple[int, ...]] = {}
        self._changed: dict[str, None] = {}
        self._bell = asyncio.Event()

    def add(self, key: str, attempt: Path) -> None:
        """Watch it, if that is not done."""
        if key not in self._attempts:
            self._attempts[key] = attempt
            self._marks[key] = _marks(attempt)
        self._open(key)

    def drop(self, key: str) -> None:
        """It is over."""
        self._attempts.pop(key, None)
        self._marks.pop(key, None)
        for handle in self._pidfds.pop(key, {}).values():
            self._forget(handle)

    def ring(self, key: str) -> None:
        """It may have changed."""
        self._changed[key] = None
        self._bell.set()

    def close(self) -> None:
        """Watch nothing any more."""
        for key in list(self._attempts):
            self.drop(key)

    async def changes(self) -> AsyncIterator[str]:
        """Keys, as they change. Never ends."""
        due = time.monotonic() + INTERVAL
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), max(0.0, due - time.monotonic()))
            if time.monotonic() >= due:
                await self._poll()
                due = time.monotonic() + INTERVAL
            self._bell.clear()
            while self._changed:
                key = next(iter(self._changed))
                del self._changed[key]
                yield key

    async def _poll(self) -> None:
        watched = dict(self._attempts)
        if not watched:
            return
        marks = await asyncio.to_thread(lambda: {key: _marks(folder) for key, folder in watched.items()})
        for key, mark in marks.items():
            if key in self._attempts and self._marks.get(key) != mark:
                self._marks[key] = mark
                self.ring(key)

    def _open(self, key: str) -> None:
        attempt = self._attempts[key]
        known = self._pidfds.setdefault(key, {})
        for replica in attempt.glob("*/started"):
            name = replica.parent.name
            if name not in known:
                handle = open_supervisor(replica.parent)
                if handle is not None:
                    known[name] = handle
                    asyncio.get_running_loop().add_reader(handle, self._ended, key, name)

    def _ended(self, key: str, name: str) -> None:
        handle = self._pidfds.get(key, {}).get(name)
        if handle is not None:
            asyncio.get_running_loop().remove_reader(handle)
        self.ring(key)

    def _forget(self, handle: int) -> None:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


def _marks(attempt: Path) -> tuple[int, ...]:
    """Changes whenever a record of the attempt does."""
    found = []
    for replica in sorted(attempt.glob("*/replica.json")):
        for name in _RECORDS:
            try:
                found.append((replica.parent / name).stat().st_mtime_ns)
            except FileNotFoundError:
                found.append(0)
    return tuple(found)
