"""The body of a submission, put together from flags. Pure but for the click options that it makes of the table."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from torchyard.cli.flags import Flag, Section
from torchyard.cli.readers import put
from torchyard.domain.errors import Invalid

Function = TypeVar("Function", bound=Callable[..., Any])
Body = dict[str, Any]

_OF_THE_GROUP = (
    "distributedFramework",
    "numWorkers",
    "minReplicas",
    "maxReplicas",
    "cleanPodPolicy",
    "slotsPerWorker",
    "sshAuthMountPath",
    "mpiLauncherCreationPolicy",
)


class Value(click.ParamType[Any]):
    """The value of a flag, read by the flag's own reader."""

    name = "value"

    def __init__(self, flag: Flag) -> None:
        self.flag = flag

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Flag, Any]:
        assert self.flag.read is not None
        try:
            return self.flag, self.flag.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        except Invalid as error:
            self.fail(f"{error.message}; {error.details}", param, ctx)


class Sectioned(click.Command):
    """A command whose help shows its options under the titles of the table."""

    sections: tuple[Section, ...] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {flag.names.split()[0]: s.title for s in self.sections for flag in s.flags}
        grouped: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                grouped.setdefault(titles.get(param.opts[0], "Options"), []).append(record)
        for title, records in grouped.items():
            with formatter.section(title):
                formatter.write_dl(records)


def options(flags: Iterable[Flag]) -> Callable[[Function], Function]:
    """Click options for these flags; all arrive in one argument, `given`, through `collect`."""

    def decorate(function: Function) -> Function:
        for flag in reversed(tuple(flags)):
            function = _option(flag)(function)
        return function

    return decorate


def _option(flag: Flag) -> Callable[[Function], Function]:
    names = (*flag.names.split(), parameter(flag))
    if flag.read is None:
        return click.option(*names, is_flag=True, flag_value=(flag, flag.value), default=None, help=flag.help)
    return click.option(*names, type=Value(flag), multiple=flag.many, metavar=flag.shown, help=flag.help)


def parameter(flag: Flag) -> str:
    """The name under which click hands a flag over."""
    longest = max(flag.names.split(), key=len)
    return "flag_" + longest.lstrip("-").replace("-", "_")


def collect(given: dict[str, Any]) -> Body:
    """The body that the flags in click's parameters fill."""
    body: Body = {"spec": {}, "torchyard": {}}
    for name, value in given.items():
        if not name.startswith("flag_") or value is None:
            continue
        for flag, read in value if _is_many(value) else [value]:
            put(body, flag.field, read)
    return body


def _is_many(value: tuple[Any, ...]) -> bool:
    return not value or isinstance(value[0], tuple)


def with_master(body: Body) -> Body:
    """The same body, where the master differs with a whole spec for it: the workers' own with its changes."""
    changes = body.get("masterSpec")
    if changes is None:
        return body | {"masterSpecSameAsWorker": True}
    changes = dict(changes)
    master = copy.deepcopy({key: value for key, value in body["spec"].items() if key not in _OF_THE_GROUP})
    if changes.pop("noPvcs", False):
        master.get("storage", {}).pop("pvc", None)
    master.setdefault("environmentVariables", []).extend(changes.pop("environmentVariables", []))
    master["compute"] = {**master.get("compute", {}), **changes.pop("compute", {})}
    if "command" in changes or "args" in changes:
        master.pop("command", None)
        master.pop("args", None)
    return body | {"masterSpec": master | changes}
