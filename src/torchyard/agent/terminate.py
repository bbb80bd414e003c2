"""Who gets SIGTERM when a tree is asked to end: everybody exactly once. Pure; sends nothing."""

from __future__ import annotations

from collections.abc import Iterable

from .tree import Process


def targets(
    processes: Iterable[Process],
    launchers: frozenset[int],
    forwarded: frozenset[int],
    done: frozenset[tuple[int, int]],
) -> list[Process]:
    """A torchrun gets it and forwards it to the group of each of its ranks (`forwarded`), so nothing below a torchrun
    and nothing in such a group gets it from us, nor does anybody in `done`. Torchruns come first."""
    by_pid = {process.pid: process for process in processes}
    chosen = [
        process
        for process in by_pid.values()
        if not process.dead
        and process.key not in done
        and process.group not in forwarded
        and not _has_ancestor(process, by_pid, launchers)
    ]
    return sorted(chosen, key=lambda process: process.pid not in launchers)


def _has_ancestor(process: Process, by_pid: dict[int, Process], launchers: frozenset[int]) -> bool:
    parent = by_pid.get(process.parent)
    while parent is not None:
        if parent.pid in launchers:
            return True
        parent = by_pid.get(parent.parent)
    return False
