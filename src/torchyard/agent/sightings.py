"""What the keeper has seen: the command, torchruns, ranks; with the pids of this machine where the keeper lives in a
pid namespace of its own. Knows no file."""

from __future__ import annotations

from . import tree


class Sightings:
    """The newest word of the keeper. `keeper_pid`: the keeper as this machine sees it (0: unknown)."""

    def __init__(self) -> None:
        self.keeper_pid = 0
        self._fenced = False
        self._command: int | None = None
        self._ranks: list[dict[str, object]] = []
        self._launchers: list[dict[str, object]] = []
        self._outer: dict[tuple[object, object], int] = {}

    def hello(self, pid: object) -> None:
        """The keeper's own idea of its pid."""
        self._fenced = pid != self.keeper_pid and self.keeper_pid != 0

    def command(self, pid: object) -> None:
        """The command runs."""
        if isinstance(pid, int):
            self._command = tree.inner_pids(self.keeper_pid).get(pid, pid) if self._fenced else pid

    def ranks(self, message: dict[str, object]) -> list[tuple[str, int]]:
        """Ranks and torchruns; back comes the rank of each log folder."""
        ranks, launchers = _records(message.get("ranks")), _records(message.get("launchers"))
        self._find([*ranks, *launchers])
        folders = [(str(rank.pop("folder", "")), rank["rank"]) for rank in ranks]
        self._ranks, self._launchers = ranks, launchers
        return [(folder, rank) for folder, rank in folders if isinstance(rank, int)]

    def status(self) -> dict[str, object]:
        """For the status file."""
        return {"command_pid": self._command, "ranks": self._ranks}

    def exit(self) -> dict[str, object]:
        """For the exit record."""
        return {"ranks": self._ranks, "launchers": self._launchers}

    def _find(self, items: list[dict[str, object]]) -> None:
        """Put our pids in place of the keeper's. One that ended before it was found keeps the inner pid."""
        if not self._fenced:
            return
        if any((item["pid"], item["started_at"]) not in self._outer and item["ended_at"] is None for item in items):
            inner = tree.inner_pids(self.keeper_pid)
            for item in items:
                pid = item["pid"]
                if isinstance(pid, int) and pid in inner and item["ended_at"] is None:
                    self._outer.setdefault((pid, item["started_at"]), inner[pid])
        for item in items:
            item["pid"] = self._outer.get((item["pid"], item["started_at"]), item["pid"])


def _records(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
