"""Quotas on the command line: the option, its value, how a quota and who holds what of it is shown."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from torchyard.cli.output import Column, Row

NONE = "none"
Function = TypeVar("Function", bound=Callable[..., Any])


class _Quota(click.ParamType[str]):
    """A number of devices, or `none`: no bound."""

    name = "quota"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text != NONE and not (text.isascii() and text.isdecimal()):
            self.fail(f"{text[:40]!r} is neither a number of devices nor `{NONE}`", param, ctx)
        return text


def quota_option(function: Function) -> Function:
    """`--quota N`, none where it is left out."""
    return _option(default=NONE, show_default=True)(function)


def new_quota_option(function: Function) -> Function:
    """`--quota N`, which must be given."""
    return _option(required=True)(function)


def _option(**more: Any) -> Callable[[Function], Function]:
    help_text = f"Devices that workloads may hold together; `{NONE}`: as many as there are."
    return click.option("--quota", type=_Quota(), metavar="N", help=help_text, **more)


def devices_of(text: str) -> int | None:
    """What the option says; None: no bound."""
    return None if text == NONE else int(text)


def quota_of(row: Row) -> str:
    """The quota of a project or department."""
    quota = (row.get("totalResources") or {}).get("gpuQuota")
    return "-" if quota is None else str(quota)


def held_of(row: Row) -> str:
    """Devices that its workloads hold now."""
    return str(row["status"]["quotaStatus"]["allocated"]["gpu"])


COLUMNS = (Column("QUOTA", quota_of), Column("HELD", held_of))
