"""Finds torchruns and their ranks in a process tree, and the exact moment and way each of them ends. Starts, stops
and reaps nothing."""

from __future__ import annotations

import os
import time

from . import kernel, tree

_YOUNG = 2.0
_RUN_ID = "TORCHELASTIC_RUN_ID"


class Launcher:
    """One torchrun, the `number`-th of this replica."""

    __slots__ = ("code", "ended_at", "fd", "number", "pid", "signal", "start", "started_at")

    def __init__(self, number: int, process: tree.Process) -> None:
        self.number = number
        self.pid = process.pid
        self.start = process.start
        self.started_at = tree.unix_time(process.start)
        self.ended_at: float | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self.fd = -1

    def record(self) -> dict[str, object]:
        """As it is told and written down."""
        return {
            "launcher": self.number,
            "pid": self.pid,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "code": self.code,
            "signal": self.signal,
        }


class Rank:
    """One training process. `folder`: the end of the path of its log folder (run/attempt/local rank), if it has one."""

    __slots__ = (
        "code",
        "ended_at",
        "fd",
        "folder",
        "launcher",
        "local_rank",
        "pid",
        "rank",
        "restart",
        "signal",
        "start",
        "started_at",
    )

    def __init__(self, launcher: int, process: tree.Process, env: dict[str, str]) -> None:
        self.launcher = launcher
        self.pid = process.pid
        self.start = process.start
        self.started_at = tree.unix_time(process.start)
        self.restart = _number(env.get("TORCHELASTIC_RESTART_COUNT", "0"))
        self.rank = _number(env["RANK"])
        self.local_rank = _number(env["LOCAL_RANK"])
        self.folder = "/".join(env.get("TORCHELASTIC_ERROR_FILE", "").split("/")[-4:-1])
        self.ended_at: float | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self.fd = -1

    @property
    def identity(self) -> tuple[object, ...]:
        """What an orphaned helper of it has inherited."""
        return (self.folder, self.restart, self.rank, self.local_rank)

    def record(self) -> dict[str, object]:
        """As it is told and written down (the supervisor drops `folder`)."""
        return {
            "launcher": self.launcher,
            "restart": self.restart,
            "rank": self.rank,
            "local_rank": self.local_rank,
            "pid": self.pid,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "code": self.code,
            "signal": self.signal,
            "folder": self.folder,
        }


class Book:
    """All torchruns and ranks seen so far. `scan` looks for new ones; the caller waits on their `fd` (a pidfd) and
    says `ended` when it becomes readable."""

    def __init__(self) -> None:
        self.launchers: list[Launcher] = []
        self.ranks: list[Rank] = []
        self._live: dict[int, Launcher | Rank] = {}
        self._looks: dict[tuple[int, int], float] = {}

    @property
    def hungry(self) -> bool:
        """A torchrun is up and no rank of it runs: look often, since a rank may not live long."""
        with_ranks = {item.launcher for item in self._live.values() if isinstance(item, Rank)}
        return any(isinstance(item, Launcher) and item.number not in with_ranks for item in self._live.values())

    @property
    def live_launchers(self) -> frozenset[int]:
        """Pids of the torchruns that run."""
        return frozenset(pid for pid, item in self._live.items() if isinstance(item, Launcher))

    def groups_of(self, launchers: frozenset[int]) -> frozenset[int]:
        """The process groups to which these torchruns forward a signal: one a rank."""
        numbers = {launcher.number for launcher in self.launchers if launcher.pid in launchers}
        return frozenset(rank.pid for rank in self.ranks if rank.launcher in numbers)

    def scan(self, roots: list[int]) -> list[Launcher | Rank]:
        """Walk the tree below `roots` down to the ranks; what is new comes back."""
        found: list[Launcher | Rank] = []
        looks: dict[tuple[int, int], float] = {}
        queue: list[tuple[int, tree.Process | None, Launcher | None]] = [(pid, None, None) for pid in roots]
        for pid, parent, above in queue:  # grows while it is walked
            known = self._live.get(pid)
            if isinstance(known, Rank):
                continue
            process = tree.look(pid)
            if process is None or process.dead:
                continue
            if known is None and self._due(process, looks):
                known = self._recognise(process, parent, above, found)
                if isinstance(known, Rank):
                    continue
            here = known if isinstance(known, Launcher) else above
            queue.extend((child, process, here) for child in tree.children(pid))
        self._looks = looks
        return found

    def _due(self, process: tree.Process, looks: dict[tuple[int, int], float]) -> bool:
        """Between fork and exec a process still shows its parent's face: look again while it is young, seldom later."""
        now = time.monotonic()
        due = self._looks.get(process.key, 0.0)
        young = tree.ticks_now() - process.start < _YOUNG * os.sysconf("SC_CLK_TCK")
        looks[process.key] = due if now < due else 0.0 if young else now + _YOUNG
        return now >= due

    def _recognise(
        self,
        process: tree.Process,
        parent: tree.Process | None,
        above: Launcher | None,
        found: list[Launcher | Rank],
    ) -> Launcher | Rank | None:
        env = tree.environment(process.pid)
        if all(_is_number(env.get(name)) for name in ("RANK", "LOCAL_RANK")) and _RUN_ID in env:
            if above is None and parent is not None:
                above = self._add_launcher(parent, found)
            rank = Rank(above.number if above else max(len(self.launchers) - 1, 0), process, env)
            known = [item.identity for item in self.ranks] if above is None else []
            if rank.identity not in known and self._track(rank):
                self.ranks.append(rank)
                found.append(rank)
            return rank
        if above is None and looks_like_launcher(tree.argv(process.pid)):
            return self._add_launcher(process, found)
        return None

    def _add_launcher(self, process: tree.Process, found: list[Launcher | Rank]) -> Launcher:
        known = self._live.get(process.pid)
        if isinstance(known, Launcher):
            return known
        launcher = Launcher(len(self.launchers), process)
        self._track(launcher)
        self.launchers.append(launcher)
        found.append(launcher)
        return launcher

    def _track(self, item: Launcher | Rank) -> bool:
        try:
            item.fd = os.pidfd_open(item.pid)
        except ProcessLookupError:
            return False
        except OSError:  # an old or fenced kernel: the next scans see it end
            item.fd = -1
        now = tree.look(item.pid)
        if now is None or now.start != item.start:
            self._release(item)
            return False
        self._live[item.pid] = item
        return True

    def ended(self, item: Launcher | Rank) -> None:
        """It has just ended. Mostly it is still a zombie, and /proc tells how; a new kernel tells also later."""
        if item.ended_at is not None:
            return
        item.ended_at = time.time()
        process = tree.look(item.pid)
        zombie = process is not None and process.start == item.start and process.dead
        status = process.exit_code if process is not None and zombie else kernel.exit_status(item.fd)
        if status is not None:
            item.code, item.signal = tree.exit_of(status)
        self._release(item)

    def reaped(self, pid: int, status: int) -> bool:
        """We were its parent and collected it ourselves. True: it was one of these."""
        item = self._live.get(pid)
        if item is None:
            return False
        item.ended_at = time.time()
        item.code, item.signal = tree.exit_of(status)
        self._release(item)
        return True

    def fd_of(self, pid: int) -> int:
        """The pidfd by which a live one is waited for; -1: none."""
        item = self._live.get(pid)
        return item.fd if item is not None else -1

    def unwatched(self) -> list[Launcher | Rank]:
        """Those without a pidfd that have ended meanwhile."""
        blind = [item for item in self._live.values() if item.fd < 0]
        return [item for item in blind if (process := tree.look(item.pid)) is None or process.dead]

    def _release(self, item: Launcher | Rank) -> None:
        self._live.pop(item.pid, None)
        if item.fd >= 0:
            os.close(item.fd)
            item.fd = -1


def looks_like_launcher(argv: list[str]) -> bool:
    """Is this the command line of a torchrun? A help only: the environment of its children decides."""
    words = argv[:8]
    if words and _base(words[0]).startswith("python"):
        words = words[1:]
        while words and words[0].startswith("-") and words[0] != "-m":
            words = words[2:] if words[0] in ("-X", "-W") else words[1:]
        if words[:1] == ["-m"]:
            return words[1:2] in (["torch.distributed.run"], ["torch.distributed.launch"])
    return bool(words) and _base(words[0]) == "torchrun"


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _is_number(text: str | None) -> bool:
    return text is not None and text.isdecimal()


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
