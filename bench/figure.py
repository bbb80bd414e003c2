"""One measured figure, and the table of all of them."""

import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What was measured, what it must be, what it was."""

    what: str
    must: str
    stretch: str
    measured: str
    met: bool


def table(figures: Sequence[Figure]) -> str:
    """Markdown."""
    rows = ["| what | must | stretch | measured | |", "|---|---|---|---|---|"]
    rows += [f"| {f.what} | {f.must} | {f.stretch} | {f.measured} | {'met' if f.met else 'NOT MET'} |" for f in figures]
    return "\n".join(rows)


def seconds(action: Callable[[], object]) -> float:
    """How long it takes, once."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def quiet(argv: Sequence[str], env: dict[str, str] | None = None) -> None:
    """Run a command to its end; its failure is ours."""
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)


def in_turns(rounds: int, *actions: Callable[[], float]) -> list[float]:
    """Medians of several actions measured in turns, so that a slow minute hits all of them."""
    taken: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for times, action in zip(taken, actions, strict=True):
            times.append(action())
    return [statistics.median(times) for times in taken]


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which this part of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
