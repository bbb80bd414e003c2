"""`torchyard --help` against `kubectl --help`."""

import shutil

from bench.figure import Figure, in_turns, quiet, seconds
from bench.yard import TORCHYARD


def measure() -> list[Figure]:
    """Whole processes, in turns."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        return []
    ours, theirs = in_turns(
        21, lambda: seconds(lambda: quiet([TORCHYARD, "--help"])), lambda: seconds(lambda: quiet([kubectl, "--help"]))
    )
    ratio = ours / theirs
    return [
        Figure(
            what="`torchyard --help` against `kubectl --help`",
            must="<= 2.5x",
            stretch="1.5x",
            measured=f"{ratio:.2f}x ({ours:.3f} s / {theirs:.3f} s)",
            met=ratio <= 2.5,
        )
    ]
