"""Who wants to know that something changed. Carries no content: readers look at the store again."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """Something about a workload is new."""

    workload_id: str
    kind: str
    """workload | event | progress | deleted"""


class Subscription:
    """The changes since it was made. A slow reader finds equal changes merged into one."""

    def __init__(self, workload_id: str | None) -> None:
        self._workload_id = workload_id
        self._pending: dict[tuple[str, str], Change] = {}
        self._ready = asyncio.Event()

    def offer(self, change: Change) -> None:
        if self._workload_id in (None, change.workload_id):
            self._pending[change.workload_id, change.kind] = change
            self._ready.set()

    async def next(self, timeout: float | None = None) -> Change | None:
        """The next change; None when none came within `timeout` seconds."""
        while not self._pending:
            self._ready.clear()
            try:
                await asyncio.wait_for(self._ready.wait(), timeout)
            except TimeoutError:
                return None
        key = next(iter(self._pending))
        return self._pending.pop(key)


class Feed:
    """Hands every change to every subscription. Lives in the server's event loop."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def publish(self, workload_id: str, kind: str) -> None:
        """Tell all subscriptions. Call from the event loop's thread."""
        change = Change(workload_id, kind)
        for subscription in self._subscriptions:
            subscription.offer(change)

    @contextmanager
    def subscribe(self, workload_id: str | None = None) -> Iterator[Subscription]:
        """Changes of one workload, or of all."""
        subscription = Subscription(workload_id)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
