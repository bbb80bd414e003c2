"""Submit and look after trainings, in Run:ai's words. `training VERB` is `training standard VERB`."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from torchyard.cli import target
from torchyard.cli.body import Sectioned, collect, options, with_master
from torchyard.cli.commands import list as listing
from torchyard.cli.commands.attach import command as attach
from torchyard.cli.commands.bash import command as bash
from torchyard.cli.commands.delete import command as delete
from torchyard.cli.commands.describe import command as describe
from torchyard.cli.commands.exec import command as execute
from torchyard.cli.commands.logs import command as logs
from torchyard.cli.commands.port_forward import command as port_forward
from torchyard.cli.commands.resume import command as resume
from torchyard.cli.commands.stop import command as stop
from torchyard.cli.flags import SECTIONS, Section
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session, project_option
from torchyard.cli.submission import Submission, send, tell

PYTORCH = "PyTorch"


class Submit(Sectioned):
    """What follows `--` is the command of the training, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        left = super().parse_args(ctx, args[:end])
        ctx.params["rest"] = tuple(args[end + 1 :])
        return left

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[NAME]", "[OPTIONS]", "[-- COMMAND [ARGS]...]"]


def submit_command(kind: str, sections: Sequence[Section]) -> click.Command:
    """`submit` for one kind of workload, with the flags that make sense for it."""

    @click.command("submit", cls=Submit)
    @click.argument("name", required=False)
    @project_option
    @click.option("--cluster", metavar="CLUSTER", help="Where it runs.")
    @click.option("--name-prefix", metavar="PREFIX", help="Name it PREFIX-1, PREFIX-2, ...")
    @click.option("-c", "--command", "entry", is_flag=True, help="What follows -- is the command, else its arguments.")
    @click.option("--code", metavar="DIR", help="Give every replica a copy of this folder as it is now.")
    @options(flag for section in sections for flag in section.flags)
    def submit(name: str | None, rest: tuple[str, ...], **given: Any) -> None:
        """Submit a training and leave it running."""
        if name is not None and given["name_prefix"] is not None:
            raise click.UsageError("give a NAME or --name-prefix, not both")
        body = collect(given)
        if rest:
            body["spec"]["command" if given["entry"] else "args"] = shlex.join(rest)
        elif given["entry"]:
            raise click.UsageError("--command is given, but nothing follows: --command -- bash run.sh")
        if kind == "distributed":
            body["spec"]["distributedFramework"] = PYTORCH
            body = with_master(body)
        submission = Submission(
            session=Session(given["project"], given["cluster"]),
            kind=kind,
            name=given["name_prefix"] if name is None else name,
            prefix=given["name_prefix"] is not None,
            body=body,
            code=Path(given["code"]) if given["code"] else None,
            environment=target.environment(os.environ),
        )
        answer = send(submission)
        tell(answer, click.echo)
        click.echo(f"  torchyard logs {answer['name']} -f", err=True)

    assert isinstance(submit, Submit)
    submit.sections = tuple(sections)
    return submit


def verbs(kind: str, sections: Sequence[Section]) -> dict[str, click.Command]:
    """Everything that can be done with trainings of a kind."""
    return {
        "submit": submit_command(kind, sections),
        "list": listing.make(kind),
        "describe": describe,
        "logs": logs,
        "exec": execute,
        "bash": bash,
        "attach": attach,
        "port-forward": port_forward,
        "suspend": stop,
        "resume": resume,
        "delete": delete,
    }


_STANDARD = verbs("training", [section for section in SECTIONS if not section.distributed])

pytorch = Guessing("pytorch", help="Distributed PyTorch training.", commands=verbs("distributed", SECTIONS))
standard = Guessing("standard", help="Training of one replica.", commands=_STANDARD)
command = Guessing(
    "training",
    help="Submit and look after trainings. `training VERB` is `training standard VERB`.",
    commands={"pytorch": pytorch, "standard": standard, **_STANDARD},
)
