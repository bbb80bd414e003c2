"""All verbs on workloads, where Run:ai has them. Each is a command of its own as well."""

import os

import click

from torchyard.cli import specfile, target
from torchyard.cli.commands.attach import command as attach
from torchyard.cli.commands.bash import command as bash
from torchyard.cli.commands.delete import command as delete
from torchyard.cli.commands.describe import command as describe
from torchyard.cli.commands.exec import command as execute
from torchyard.cli.commands.explain import command as explain
from torchyard.cli.commands.list import command as listing
from torchyard.cli.commands.logs import command as logs
from torchyard.cli.commands.port_forward import command as port_forward
from torchyard.cli.commands.resume import command as resume
from torchyard.cli.commands.stop import command as stop
from torchyard.cli.commands.wait import command as wait
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session, project_option
from torchyard.cli.submission import Submission, send, tell


@click.group("workload", cls=Guessing)
def command() -> None:
    """All verbs on workloads."""


@command.command("submit")
@click.option("-f", "--file", "file", required=True, metavar="FILE", help="Spec file, or - for stdin.")
@click.option("--name", metavar="NAME", help="Name, else that in the file.")
@project_option
def submit(file: str, name: str | None, project: str | None) -> None:
    """Submit a spec file without following it."""
    read = specfile.read(file)
    submission = Submission(
        session=Session(project or read.project, read.cluster),
        kind=read.kind,
        name=name or read.name,
        body=read.body,
        code=read.code,
        environment=target.environment(os.environ),
    )
    tell(send(submission), click.echo)


for each in (listing, describe, logs, execute, bash, attach, port_forward, wait, stop, resume, delete, explain):
    command.add_command(each)
command.add_command(stop, "suspend")
