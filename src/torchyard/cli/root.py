"""The group of all commands: finds a command's file by its name and guesses what a wrong name meant."""

import difflib
import importlib
import os

import click

from torchyard.cli import failure
from torchyard.cli.main import ALIASES, COMPLETING, command_names, help_text, module_name


class Guessing(click.Group):
    """A group that names the nearest command when there is none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"there is no command {args[0][:80]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class Root(Guessing):
    """All commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*command_names(), *ALIASES])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in command_names():
            return None
        command = importlib.import_module(f"torchyard.cli.commands.{module_name(name)}").command
        assert isinstance(command, click.Command)
        traceable(command)
        if COMPLETING in os.environ:
            from torchyard.cli import complete

            complete.teach(command, (name,))
        return command

    def get_help(self, ctx: click.Context) -> str:
        return help_text().rstrip("\n")


def traceable(command: click.Command) -> None:
    """`--debug`, on every command: an error shows where it comes from."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            traceable(each)
    elif all(param.name != "debug" for param in command.params):
        command.params.append(_DEBUG)


def _trace(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        failure.TRACED.set(True)


_DEBUG = click.Option(
    ["--debug"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_trace,
    help="Show where an error comes from.",
)

root = Root(
    name="torchyard",
    params=[_DEBUG],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
