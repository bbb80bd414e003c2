"""A submission on its way: ids for names, the folder of code, the answer told. Knows the client, no flags."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchyard.cli import target
from torchyard.cli.session import Session
from torchyard.client import workloads

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is submitted and where to."""

    session: Session
    kind: str
    body: dict[str, Any]
    environment: dict[str, str]
    name: str | None = None
    prefix: bool = False
    code: Path | None = None

    @property
    def several(self) -> bool:
        """More than one replica or device: lines of the log tell who speaks."""
        devices = self.body["spec"].get("compute", {}).get("gpuDevicesRequest") or 0
        return self.kind == "distributed" or devices > 1


def send(submission: Submission) -> Row:
    """Upload the code if there is any, and create the workload."""
    body = submission.body
    spec, extras = body["spec"], body.get("torchyard", {})
    if submission.code is not None:
        extras = extras | {"code": target.send_code(submission.session, submission.code)}
    elif _in_place(spec, extras):
        spec = {"workingDir": str(target.working_folder())} | spec
    return workloads.submit(
        submission.session.server,
        submission.kind,
        body
        | {
            **({"name": submission.name} if submission.name is not None else {}),
            **({"useGivenNameAsPrefix": True} if submission.prefix else {}),
            "projectId": submission.session.project_id,
            "clusterId": submission.session.cluster_id,
            "spec": spec,
            **({"torchyard": extras} if extras else {}),
            "environment": submission.environment,
        },
    )


def tell(answer: Row, say: Callable[[str], None], *, warnings_only: bool = False) -> None:
    """`ddp: 2 replicas x 1 device = 2 ranks`, and what the rules found."""
    if not warnings_only:
        say(f"{answer['name']}: {answer['sentence']}")
    for finding in answer.get("findings") or ():
        if finding["severity"] == "warning":
            fix = f"; {finding['fix']}" if finding.get("fix") else ""
            say(f"warning: {finding['where']}: {finding['message']}{fix}")


def _in_place(spec: Row, extras: Row) -> bool:
    """Nothing says where the code is, so it is this folder."""
    if spec.get("workingDir") or extras.get("code"):
        return False
    return not spec.get("image") or extras.get("isolation") == "process"
