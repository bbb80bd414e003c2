"""`torchyard list` with a running server, whole process."""

from bench.figure import Figure, in_turns, quiet, seconds
from bench.yard import TORCHYARD, place


def measure() -> list[Figure]:
    """Against a server with a few workloads."""
    with place() as here:
        for number in range(5):
            here.torchyard("run", "-d", "--name", f"w{number}", "--", "true")
        (taken,) = in_turns(15, lambda: seconds(lambda: quiet([TORCHYARD, "list"], env=here.env)))
    return [
        Figure(
            what="`torchyard list` with a running server, whole process",
            must="<= 0.35 s",
            stretch="0.2 s",
            measured=f"{taken:.3f} s",
            met=taken <= 0.35,
        )
    ]
