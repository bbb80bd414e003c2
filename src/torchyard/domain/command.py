"""What the words of a command line are, and which file they start. Knows no file system."""

import posixpath
import re
import shlex
from collections.abc import Iterator

from torchyard.domain.errors import Invalid, Problem
from torchyard.domain.spec import ReplicaSpec

_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_TORCHRUN_FLAGS = ("standalone", "module", "m", "no-python", "run-path", "use-env", "h", "help")


def argv_of(spec: ReplicaSpec, field: str = "spec") -> tuple[str, ...]:
    """The words of `command`, then those of `args`. Empty when there is neither. Raises Invalid for an open quote."""
    return (*_split(spec.command, f"{field}.command"), *_split(spec.args, f"{field}.args"))


def _split(text: str | None, field: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        what = "a quote is not closed" if "quotation" in str(error) else "it ends in a backslash"
        raise Invalid(
            what,
            "quote the whole command once more or remove the stray character",
            (Problem(field, what),),
        ) from None


def is_torchrun(argv: tuple[str, ...]) -> bool:
    """The command itself is torchrun: by its name, or as a module of a Python."""
    return _after_torchrun(argv) is not None


def script_of(argv: tuple[str, ...]) -> str | None:
    """The relative path of the file that a Python, torchrun or shell is told to run; None when it names none."""
    rest = _after_torchrun(argv)
    if rest is not None:
        found = _torchrun_script(rest)
    elif argv and _PYTHON.fullmatch(posixpath.basename(argv[0])):
        module, found = _python(argv[1:])
        found = None if module else found
    elif argv and posixpath.basename(argv[0]) in _SHELLS:
        found = _shell_script(argv[1:])
    else:
        found = argv[0] if argv and "/" in argv[0] else None
    return found if found and not found.startswith(("/", "~")) and "$" not in found else None


def script_path(spec: ReplicaSpec) -> str | None:
    """The script's path from the folder that holds the code; None when there is none or it lies outside."""
    try:
        script = script_of(argv_of(spec))
    except Invalid:
        return None
    if script is None:
        return None
    inside = spec.working_dir if spec.working_dir and not spec.working_dir.startswith("/") else ""
    path = posixpath.normpath(posixpath.join(inside, script))
    return None if path.startswith("..") else path


def _after_torchrun(argv: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words that torchrun gets; None when the command is not torchrun."""
    if not argv:
        return None
    program = posixpath.basename(argv[0])
    if program == "torchrun":
        return argv[1:]
    if not _PYTHON.fullmatch(program):
        return None
    module, _ = _python(argv[1:])
    return argv[argv.index(module) + 1 :] if module in _TORCHRUN_MODULES else None


def _python(words: tuple[str, ...]) -> tuple[str | None, str | None]:
    """(module after -m, None) or (None, script)."""
    rest = iter(words)
    for word in rest:
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            next(rest, None)
        elif word == "-m":
            return next(rest, None), None
        elif word.startswith("-c") or word == "-":
            return None, None
        elif not word.startswith("-"):
            return None, word
    return None, None


def _torchrun_script(words: tuple[str, ...]) -> str | None:
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return word
        name = word.lstrip("-").replace("_", "-")
        if name in ("m", "module", "no-python"):
            return None
        if "=" not in name and name not in _TORCHRUN_FLAGS:
            next(rest, None)
    return None


def _shell_script(words: tuple[str, ...]) -> str | None:
    rest: Iterator[str] = iter(words)
    for word in rest:
        if word == "--":
            return next(rest, None)
        if not word.startswith(("-", "+")):
            return word
        if not word.startswith("--"):
            if "c" in word or "s" in word:
                return None
            if word.endswith(("o", "O")):
                next(rest, None)
    return None
