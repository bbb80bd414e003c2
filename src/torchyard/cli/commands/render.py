"""Show what would be launched for a spec file. Works without a server, creates nothing and looks up nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchyard.cli import specfile
from torchyard.cli.output import as_text, note, write
from torchyard.domain.errors import Invalid, NotFound, Problem

if TYPE_CHECKING:
    from torchyard.domain.launch import LaunchPlan
    from torchyard.domain.spec import Submission


@click.command("render")
@click.argument("spec")
@click.option("--cluster", metavar="CLUSTER", help="Cluster to render for; here: local.")
@click.option("--name", metavar="NAME", help="Name, else that in the file.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="How to show it.")
@click.option("--json", "output", flag_value="json", help="The same as -o json.")
@click.option("--yaml", "output", flag_value="yaml", help="The same as -o yaml.")
def command(spec: str, cluster: str | None, name: str | None, output: str) -> None:
    """Show what would be launched for a spec file: replicas, commands, environment, mounts.

    It needs no server, and takes for granted that claims are there and devices are free.
    """
    submission = specfile.submission_of(spec)
    submission = submission.model_copy(
        update={"name": name or submission.name, "cluster": cluster or submission.cluster}
    )
    if submission.cluster != "local":
        raise NotFound(f"there is no cluster {submission.cluster!r} to render for", "render for --cluster local")
    from torchyard.render.text import show

    write(as_text(show(plan_of(submission)), output))


def plan_of(submission: "Submission") -> "LaunchPlan":
    """The launch plan on a machine where everything can run. Raises Invalid with what the rules say against it."""
    from torchyard.domain.finding import Severity
    from torchyard.domain.isolation import specs_of
    from torchyard.domain.observation import Capabilities
    from torchyard.domain.workload import DRAFT_ID
    from torchyard.policy.admit import admit
    from torchyard.policy.rule import Folder, View
    from torchyard.render.isolation import pick
    from torchyard.render.launch import plan

    able = Capabilities(sandbox=True, container=True, in_place=True)
    folder = submission.spec.working_dir
    exists = bool(folder and Path(folder).is_dir())
    view = View(
        submission=submission,
        capabilities=able,
        devices=submission.devices,
        device_kind="device",
        claims=tuple(pvc.claim_name for spec in specs_of(submission) for pvc in spec.storage.pvc if pvc.claim_name),
        folder=Folder(path=folder, exists=exists, readable=exists) if folder and folder.startswith("/") else None,
    )
    findings = admit(view)
    for finding in findings:
        if finding.severity is Severity.WARNING:
            note(f"warning: {finding.where}: {finding.message}")
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        problems = tuple(Problem(each.where, each.message, each.rule) for each in errors)
        raise Invalid(errors[0].message, errors[0].fix, problems)
    choice = pick(submission, able, folder_exists=exists)
    return plan(submission, workload_id=DRAFT_ID, attempt=1, choice=choice)
