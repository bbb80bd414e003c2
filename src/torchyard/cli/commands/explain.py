"""Say in one sentence why a workload is where it is. Shows the verdict; the thinking is the server's."""

from typing import Any

import click

from torchyard.cli.output import as_text, output_options, write
from torchyard.cli.session import Session, project_option
from torchyard.client import workloads

Row = dict[str, Any]


@click.command("explain")
@click.argument("name")
@project_option
@output_options
def command(name: str, project: str | None, output: str) -> None:
    """Say in one sentence why a workload is where it is, and what to do."""
    session = Session(project)
    row = session.workload(name)
    verdict = workloads.explain(session.server, row["id"])
    if output in ("json", "yaml"):
        write(as_text(verdict, output))
        return
    write(f"{row['name']}\n" if output == "name" else page(row["name"], verdict))


def page(name: str, verdict: Row) -> str:
    """The verdict for people: the sentence, what failed first, the evidence, the next step."""
    told = str(verdict["sentence"])
    lines = [told if told.startswith(name) else f"{name} is {verdict['phase']}: {told}"]
    if verdict.get("cause"):
        lines.append(f"  cause: {verdict['cause']}")
    lines += [f"  {line}" for line in _fault(verdict.get("fault"))]
    lines += [f"  - {fact}" for fact in verdict.get("evidence") or ()]
    if verdict.get("nextStep"):
        lines += [f"  next: {verdict['nextStep']}"]
    return "\n".join(lines) + "\n"


def _fault(fault: Row | None) -> list[str]:
    if not fault:
        return []
    who = fault["replica"] + (f", rank {fault['rank']}" if fault.get("rank") is not None else "")
    what = fault.get("exception") or fault.get("exit") or ""
    lines = [f"failed first: {who}: {what}" + (f" at {fault['frame']}" if fault.get("frame") else "")]
    if fault.get("exception") and fault.get("exit"):
        lines.append(f"exit: {fault['exit']}")
    last = fault.get("lastLines") or ()
    if last:
        lines += ["last lines:", *(f"  | {line}" for line in last)]
    return lines
