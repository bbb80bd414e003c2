"""A torchrun line in torchyard's words: which of its flags mean what. Pure; knows no server and no files."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchyard.domain.errors import Invalid

RENDEZVOUS = (
    "--rdzv-backend",
    "--rdzv-endpoint",
    "--rdzv-id",
    "--rdzv-conf",
    "--master-addr",
    "--master-port",
    "--node-rank",
    "--local-addr",
)
"""Refused: torchyard sets these."""
LOGS = ("--log-dir", "-r --redirects", "-t --tee", "--logs-specs")
"""Left out with a note: torchyard keeps the log of every rank."""
PASSED = (
    "--monitor-interval",
    "--start-method",
    "--event-log-handler",
    "--role",
    "--local-ranks-filter",
    "--duplicate-stdout-filters",
    "--duplicate-stderr-filters",
    "--numa-binding",
    "--signals-to-handle",
    "--shutdown-timeout",
)
"""Handed on as they are."""
PASSED_BARE = ("--run-path", "--virtual-local-rank")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """What torchrun's own flags say."""

    nproc: str | None = None
    nnodes: str | None = None
    module: bool = False
    no_python: bool = False
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """How many replicas there are, ranks in each, and devices that each asks for."""

    replicas: int
    nproc: int
    devices: int


def replicas_of(nnodes: str | None) -> int:
    """How many replicas `--nnodes` asks for: `2`, or `1:1`. Raises Invalid for a range that can change."""
    if nnodes is None:
        return 1
    least, _, most = nnodes.partition(":")
    if not least.isdecimal() or int(least) < 1 or (most and most != least):
        raise Invalid(
            f"--nnodes is {nnodes!r}: give a number", "a size that changes is not possible on this machine: --nnodes 2"
        )
    return int(least)


def size_of(launcher: Launcher, asked: int | None, replicas: int, nodes: Sequence[dict[str, Any]]) -> Size:
    """The size of a training. `asked`: devices of each replica; `nodes` are looked at for auto, gpu and cpu only."""
    nproc = _nproc(launcher.nproc, asked, nodes)
    if asked is not None:
        return Size(replicas, nproc, asked)
    on_cpu = launcher.nproc == "cpu" and _gpus(nodes) > 0
    return Size(replicas, nproc, 0 if on_cpu else nproc)


def needs_nodes(launcher: Launcher) -> bool:
    """The number of ranks depends on the machine."""
    return launcher.nproc in ("auto", "gpu", "cpu")


def command_line(launcher: Launcher, size: Size, words: Sequence[str]) -> str:
    """The command that each replica runs. Several replicas get their rendezvous from the environment."""
    line = ["torchrun"]
    if size.replicas == 1:
        line.append("--standalone")
    line += ["--nproc-per-node", str(size.nproc), *launcher.passed]
    if launcher.module:
        line.append("--module")
    if launcher.no_python:
        line.append("--no-python")
    return shlex.join([*line, *words])


def _nproc(text: str | None, asked: int | None, nodes: Sequence[dict[str, Any]]) -> int:
    match text:
        case None:
            return max(1, asked or 1)
        case "auto":
            return _gpus(nodes) or _cpus(nodes)
        case "cpu":
            return _cpus(nodes)
        case "gpu":
            if count := _gpus(nodes):
                return count
            raise Invalid("--nproc-per-node gpu: there is no GPU here", "say cpu, or how many ranks: 2")
    if not text.isdecimal() or int(text) < 1:
        raise Invalid(f"--nproc-per-node is {text[:40]!r}: give a number, auto, gpu or cpu")
    return int(text)


def _gpus(nodes: Sequence[dict[str, Any]]) -> int:
    return max((int(node["gpuInfo"]["gpuCount"]) for node in nodes), default=0)


def _cpus(nodes: Sequence[dict[str, Any]]) -> int:
    # As many as devices where these are CPU slots: more could never start.
    slots = [len(node["devices"]) if not node["gpuInfo"]["gpuCount"] else int(node["cpuCores"]) for node in nodes]
    return max(1, *slots) if slots else 1
