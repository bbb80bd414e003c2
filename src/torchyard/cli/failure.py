"""Errors as a sentence on stderr and an exit code. Knows the three kinds: the user's, the server's, our own."""

import difflib
import os
import sys
import traceback
from collections.abc import Sequence
from contextvars import ContextVar

import click

from torchyard.domain.errors import Conflict, InUse, Invalid, NotFound, TooLarge, TorchyardError

BAD_INPUT, FAILED, OWN, INTERRUPTED = 2, 1, 125, 130
TRACED: ContextVar[bool] = ContextVar("traced", default=False)
"""Somebody asked by `--debug` or TORCHYARD_DEBUG where errors come from."""
_FOLLOWERS = (["run"], ["wait"], ["workload", "wait"])


def report(error: Exception, words: Sequence[str]) -> int:
    """Say what went wrong and answer the exit code."""
    if TRACED.get() or os.environ.get("TORCHYARD_DEBUG"):
        traceback.print_exception(error)
    own = any(list(words[: len(names)]) == names for names in _FOLLOWERS)
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.Abort() if isinstance(error.__cause__, KeyboardInterrupt):
            return INTERRUPTED
        case click.Abort():
            say("given up; nothing was changed")
            return FAILED
        case click.NoSuchOption():
            near = nearest_option(error)
            say(f"there is no option {error.option_name}" + (f"; did you mean {near}?" if near else ""), _where(error))
            return OWN if own else BAD_INPUT
        case click.exceptions.NoArgsIsHelpError():
            sys.stderr.write(f"{error.format_message().rstrip()}\n")
            return OWN if own else BAD_INPUT
        case click.UsageError():
            say(error.format_message(), _where(error))
            return OWN if own else BAD_INPUT
        case click.ClickException():
            say(error.format_message())
            return OWN if own else FAILED
        case TorchyardError():
            say(sentence(error), *more(error))
            bad = isinstance(error, Invalid | NotFound | Conflict | InUse | TooLarge)
            return OWN if own else BAD_INPUT if bad else FAILED
        case OSError():
            say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
            return OWN if own else FAILED
    say(
        f"something went wrong inside torchyard: {type(error).__name__}: {error}",
        "--debug shows where; please report it",
    )
    return OWN if own else FAILED


def say(message: str, *hints: str) -> None:
    """One sentence, and below it what to do."""
    sys.stderr.write("".join([f"torchyard: {message}\n", *(f"  {hint}\n" for hint in hints if hint)]))


def sentence(error: TorchyardError) -> str:
    """What happened; of a single problem also in which field. Several follow one by one."""
    match error.problems:
        case (only,) if only.field and only.details == error.message:
            return f"{only.field}: {only.details}"
        case (_, _, *_) if all(problem.details in error.message for problem in error.problems):
            return f"{len(error.problems)} things are wrong"
    return error.message


def more(error: TorchyardError) -> list[str]:
    """What to do, and every single problem that the message does not tell already."""
    told = [f"{p.field}: {p.details}" if p.field else p.details for p in error.problems]
    known = sentence(error)
    return [*(line for line in told if line not in known), *([error.details] if error.details else [])]


def nearest_option(error: click.NoSuchOption) -> str | None:
    """The option that a wrong one was meant to be: by its beginning, since long names are cut short."""
    if error.ctx is None:
        return None
    wrong = error.option_name.replace("_", "-")
    known = [
        name
        for param in error.ctx.command.params
        if isinstance(param, click.Option) and not param.hidden
        for name in param.opts
        if name.startswith("--")
    ]
    scored = [(difflib.SequenceMatcher(None, wrong, name[: len(wrong) + 1]).ratio(), name) for name in known]
    best = max(scored, default=(0.0, ""))
    return best[1] if best[0] > 0.65 else None


def _where(error: click.UsageError) -> str:
    if error.ctx is None:
        return "see `torchyard --help`"
    return f"see `{error.ctx.command_path} --help`"
