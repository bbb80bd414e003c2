"""Run a script, a command or a spec file, follow it and exit as it exits.

Knows the command line; the words of torchrun are translated elsewhere.
"""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from torchyard.cli import specfile, target, torchrun
from torchyard.cli.body import collect, options, with_master
from torchyard.cli.flags import flags_of_run
from torchyard.cli.follow import follow, open_screen
from torchyard.cli.session import Session, project_option
from torchyard.cli.submission import Submission, send, tell
from torchyard.cli.torchrun import Launcher
from torchyard.client import org
from torchyard.domain.errors import Invalid

Function = TypeVar("Function", bound=Callable[..., Any])

HELP = """\
Run a training here, follow it, and exit as it exits.

\b
  torchyard run --nproc-per-node 2 train.py --epochs 3    a script and its arguments, by torchrun
  torchyard run -m package.train                          a module
  torchyard run -- bash run.sh                            any command
  torchyard run spec.yaml                                 a spec file (- for stdin)

The training sees this folder, your environment and your PATH; its standard input is empty.
Ctrl-C detaches and leaves it running; twice stops it.
Exit code: that of the training; 128+n for signal n, 130 when stopped or detached, 125 for torchyard's own errors.
"""


class RunCommand(click.Command):
    """Options end at the script or at `--`; after a spec file they go on."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        if not given and not ctx.resilient_parsing:
            raise click.UsageError("there is nothing to run: name a script, a spec file, or `-- COMMAND`", ctx)
        rest = super().parse_args(ctx, list(args))
        words = ctx.params["words"]
        before = given[: len(given) - len(words)]
        ctx.params["any_command"] = bool(before) and before[-1] == "--" and bool(words)
        if words and not ctx.params["any_command"] and specfile.is_spec(words[0]):
            ctx.allow_interspersed_args = True
            rest = super().parse_args(ctx, given)
            if len(ctx.params["words"]) > 1:
                raise click.UsageError(f"{ctx.params['words'][1]!r} after a spec file is not an option", ctx)
            ctx.params["any_command"] = False
        return rest


def _refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if value is not None:
        raise click.UsageError(f"{param.opts[0]}: torchyard sets this; leave it out", ctx)


def _torchrun_options(function: Function) -> Function:
    refused = [
        click.option(name, _parameter(name), hidden=True, expose_value=False, callback=_refuse)
        for name in torchrun.RENDEZVOUS
    ]
    bare = [click.option(name, _parameter(name), is_flag=True, hidden=True) for name in torchrun.PASSED_BARE]
    passed = [click.option(name, _parameter(name), hidden=True) for name in torchrun.PASSED]
    left = [click.option(*names.split(), _parameter(names), hidden=True) for names in torchrun.LOGS]
    for decorate in (*refused, *bare, *passed, *left):
        function = decorate(function)
    return function


def _parameter(names: str) -> str:
    return "torchrun_" + names.split()[-1].lstrip("-").replace("-", "_")


@click.command(
    cls=RunCommand,
    help=HELP,
    context_settings={
        "allow_interspersed_args": False,
        "token_normalize_func": lambda name: name.replace("_", "-"),
    },
)
@click.option("--nproc-per-node", "nproc", metavar="N", help="Ranks in each replica: a number, auto, gpu or cpu.")
@click.option("--nnodes", metavar="N", help="Replicas; each has its own torchrun.")
@click.option("--standalone", is_flag=True, help="Taken, and not needed.")
@click.option("-m", "--module", is_flag=True, help="The script is a module.")
@click.option("--no-python", is_flag=True, help="The script is a program.")
@click.option("--max-restarts", type=click.IntRange(min=0), metavar="N", help="The same as --backoff-limit N.")
@click.option("--name", metavar="NAME", help="Name of the workload, else train-1, train-2, ...")
@project_option
@click.option("--cluster", metavar="CLUSTER", help="Where it runs.")
@click.option("-d", "--detach", is_flag=True, help="Print the name and leave it running.")
@click.option("--code", metavar="DIR", help="Give every replica a copy of this folder as it is now.")
@_torchrun_options
@options(flags_of_run())
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT|SPEC|-- COMMAND [ARGS]...")
def command(detach: bool, **given: Any) -> int:
    """Run a script, a command or a spec file."""
    return _go(submission_of(**given), detach)


def submission_of(words: tuple[str, ...], any_command: bool, **given: Any) -> Submission:
    """What a command line submits. Asks the server only where the size of the machine matters."""
    if not words:
        raise click.UsageError("there is nothing to run: name a script, a spec file, or `-- COMMAND`")
    session = Session(given["project"], given["cluster"])
    if not any_command and specfile.is_spec(words[0]):
        return _of_file(words[0], given)
    return _of_words(session, words, any_command, given)


def _go(submission: Submission, detach: bool) -> int:
    answer = send(submission)
    if detach:
        click.echo(answer["name"])
        tell(answer, lambda text: click.echo(text, err=True), warnings_only=True)
        return 0
    screen = open_screen(several=submission.several)
    tell(answer, screen.say)
    screen.flush()
    return follow(
        submission.session, {"id": answer["workloadId"], "name": answer["name"], "type": submission.kind}, screen
    )


def _of_file(word: str, given: dict[str, Any]) -> Submission:
    _only_ours(given)
    file = specfile.read(word)
    own = collect(given)
    body = _over({"torchyard": {}} | file.body, own)
    body["spec"].setdefault("backoffLimit", 0)
    folder = Path(given["code"]) if given["code"] else file.code
    session = Session(given["project"] or file.project, given["cluster"] or file.cluster)
    return Submission(
        session=session,
        kind=file.kind,
        name=file.name if given["name"] is None else given["name"],
        body=body,
        code=folder,
        environment=target.environment(os.environ),
    )


def _of_words(session: Session, words: tuple[str, ...], any_command: bool, given: dict[str, Any]) -> Submission:
    body = collect(given)
    launcher = _launcher(given)
    for names in torchrun.LOGS:
        if given.get(_parameter(names)) is not None:
            click.echo(f"torchyard keeps the log of every rank: {names.split()[-1]} is left out", err=True)
    replicas = _replicas(launcher, body)
    body["spec"].setdefault("backoffLimit", given["max_restarts"] if given["max_restarts"] is not None else 0)
    folder = Path(given["code"]) if given["code"] else None
    if folder is None and not body["spec"].get("image") and body["spec"].get("workingDir"):
        body["spec"]["workingDir"] = str(target.working_folder() / body["spec"]["workingDir"])
    env = _checked(words, any_command, launcher, body, folder)
    nodes = org.nodes(session.server) if torchrun.needs_nodes(launcher) else []
    asked = body["spec"].get("compute", {}).get("gpuDevicesRequest")
    if any_command:
        body["spec"]["command"] = shlex.join(words)
        if asked is None and launcher.nproc is not None:
            asked = torchrun.size_of(launcher, None, replicas, nodes).devices
        devices = asked or 0
    else:
        size = torchrun.size_of(launcher, asked, replicas, nodes)
        body["spec"]["command"] = torchrun.command_line(launcher, size, words)
        devices = size.devices
    if devices:
        body["spec"].setdefault("compute", {})["gpuDevicesRequest"] = devices
    kind = "training" if replicas == 1 else "distributed"
    if kind == "distributed":
        body["spec"] |= {"distributedFramework": "PyTorch", "numWorkers": replicas - 1}
        body = with_master(body)
    return Submission(session=session, kind=kind, name=given["name"], body=body, code=folder, environment=env)


def _checked(
    words: tuple[str, ...], any_command: bool, launcher: Launcher, body: dict[str, Any], folder: Path | None
) -> dict[str, str]:
    """The environment to send, after a look at what can be seen from here before anything is created."""
    env = target.environment(os.environ)
    spec = body["spec"]
    if spec.get("image") and not folder and body["torchyard"].get("isolation") != "process":
        return env
    here = folder or Path(spec.get("workingDir") or target.working_folder())
    if not folder and spec.get("workingDir") and not here.is_dir():
        return env
    if any_command:
        target.check_command(words[0], here, env)
        return env
    if launcher.no_python:
        target.check_command(words[0], here, env)
    elif not launcher.module:
        target.check_script(words[0], here)
    return target.with_torchrun(os.environ)


def _launcher(given: dict[str, Any]) -> Launcher:
    passed: list[str] = []
    for name in torchrun.PASSED:
        value = given.get(_parameter(name))
        if value is not None:
            passed += [name, value]
    return Launcher(
        nproc=given["nproc"],
        nnodes=given["nnodes"],
        module=given["module"],
        no_python=given["no_python"],
        passed=(*passed, *(name for name in torchrun.PASSED_BARE if given[_parameter(name)])),
    )


def _replicas(launcher: Launcher, body: dict[str, Any]) -> int:
    replicas = torchrun.replicas_of(launcher.nnodes)
    workers = body["spec"].pop("numWorkers", None)
    if workers is None:
        return replicas
    if launcher.nnodes is not None and replicas != workers + 1:
        raise Invalid(
            f"--nnodes {launcher.nnodes} and --workers {workers} disagree",
            f"{workers} workers and a master are {workers + 1} replicas: give one of the two",
        )
    return int(workers) + 1


def _only_ours(given: dict[str, Any]) -> None:
    names = {"nproc": "--nproc-per-node", "nnodes": "--nnodes", "module": "-m", "no_python": "--no-python"}
    for parameter, name in names.items():
        if given[parameter]:
            raise click.UsageError(f"{name} is for scripts; the spec file says it by compute and numWorkers")


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """One object over another, field by field; lists grow."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            merged[key] = _over(old, value)
        elif isinstance(value, list) and isinstance(old, list):
            merged[key] = [*old, *value]
        else:
            merged[key] = value
    return merged
