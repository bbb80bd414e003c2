"""Runs the measurements and prints a table; `--write` puts it into docs/benchmarks.md."""

import argparse
import importlib
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.figure import Figure, table

NAMES = ("help", "listing", "first_step", "retry_gap", "kill_to_step", "thousand", "rest")
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `make bench`. Times on a shared machine are noisy; what counts is the ratio to the same work done without
torchyard in the same run. Each figure is the median of several runs, taken in turns.
"""


def main() -> None:
    """Measure what was asked for, all without arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f"{unknown[0]!r} is no measurement; there are {', '.join(NAMES)}")
    figures: list[Figure] = []
    for name in options.names or NAMES:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        figures.extend(importlib.import_module(f"bench.{name}").measure())
    text = table(figures)
    print(text)
    if options.write:
        version = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
        where = f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"
        when = f"{datetime.now(UTC):%Y-%m-%d}"
        PAGE.write_text(f"{HEAD}\nRevision {version.stdout.strip()}, {when}; {where}.\n\n{text}\n")


main()
