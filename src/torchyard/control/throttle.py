"""Counts wrong secrets by client, so that nobody may guess for long. Knows no clock: it is told the time."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from math import ceil

TRIES = 10
WINDOW = 60.0
"""Seconds in which so many wrong tries are borne."""
CLIENTS = 10_000
"""Names that are remembered; a flood of new ones pushes out the oldest."""


@dataclass(slots=True)
class Throttle:
    """Wrong tries of the last minute by client id or username."""

    _wrong: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)

    def wait(self, client: str, now: float) -> int:
        """Seconds until this client may try again; 0: now."""
        tries = self._wrong.get(client)
        if tries is None or len(tries) < TRIES:
            return 0
        return max(0, ceil(tries[0] + WINDOW - now))

    def wrong(self, client: str, now: float) -> None:
        """It came with a wrong secret."""
        self._wrong.setdefault(client, deque(maxlen=TRIES)).append(now)
        self._wrong.move_to_end(client)
        while len(self._wrong) > CLIENTS:
            self._wrong.popitem(last=False)

    def right(self, client: str) -> None:
        """It came with the right secret: what was wrong before is forgiven."""
        self._wrong.pop(client, None)
