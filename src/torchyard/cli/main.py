"""The door of the command line: help and version at once, all else handed to click.

Imports nothing that costs time; a command's file is imported when that command runs.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from torchyard import __version__

SECTIONS = (
    ("Train", ("run", "training", "pytorch", "render")),
    ("Watch", ("list", "describe", "logs", "explain", "wait", "exec", "bash", "attach", "port-forward")),
    ("Change", ("stop", "resume", "delete", "workload")),
    ("Data", ("checkpoint", "pvc")),
    (
        "Places",
        ("project", "department", "cluster", "node", "nodepool", "config", "ui", "server", "completion", "version"),
    ),
    ("People", ("login", "logout", "whoami", "auth", "access-key", "user")),
)
ALIASES = {"suspend": "stop"}
COMPLETING = "_TORCHYARD_COMPLETE"
"""Set by the shell's script while it completes."""
COMMANDS = Path(__file__).parent / "commands"

_HEAD = """\
Usage: torchyard COMMAND [OPTIONS] [ARGS]...

Distributed PyTorch training on this machine: described once, watched, restarted, explained.

  torchyard run --nproc-per-node 2 train.py --epochs 3   your torchrun line with one word changed
"""
_FOOT = """
Options:
  --version   what is installed
  --debug     show where an error comes from; every command takes it
  --help      this text; `torchyard COMMAND --help` for one command
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the answer is its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    first = words[0] if words else "" if COMPLETING in os.environ else "help"
    if first in ("--help", "-h", "help"):
        sys.stdout.write(help_text())
        return 0
    if first == "--version":
        sys.stdout.write(f"torchyard {__version__}\n")
        return 0
    return _run(words)


def command_names() -> list[str]:
    """All commands: the files in commands/, which have _ where the command has -."""
    return sorted(path.stem.replace("_", "-") for path in COMMANDS.glob("*.py") if not path.stem.startswith("_"))


def module_name(name: str) -> str:
    """The name of a command's file, without its ending."""
    return name.replace("-", "_")


def help_text() -> str:
    """The help, put together from the first sentence of each command's file."""
    placed = {name for _, names in SECTIONS for name in names}
    others = tuple(name for name in command_names() if name not in placed)
    sections = (*SECTIONS, ("More", others)) if others else SECTIONS
    width = max(len(name) for _, names in sections for name in names)
    parts = [_HEAD]
    for title, names in sections:
        rows = [f"  {name:<{width}} {first_sentence(name)}\n" for name in names]
        parts.append(f"\n{title}:\n" + "".join(rows))
    return "".join(parts) + _FOOT


def first_sentence(name: str) -> str:
    """What a command's file says of it, without importing it."""
    with (COMMANDS / f"{module_name(name)}.py").open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').partition(". ")[0].rstrip(".")


def _run(words: list[str]) -> int:
    from torchyard.cli import failure

    failure.TRACED.set(False)
    try:
        from torchyard.cli.root import root

        # Replacement instead of a crash for names and log lines that the terminal's encoding does not know.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        result = root.main(words, prog_name="torchyard", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        # Whoever read our output has enough of it (`| head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return failure.report(error, words)


if __name__ == "__main__":
    sys.exit(main())
