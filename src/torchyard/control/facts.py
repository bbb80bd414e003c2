"""Gathers what the policy rules look at: the cluster, the claims and the folder that a submission names."""

import asyncio
import os
import tarfile

from torchyard.control import checkpoints
from torchyard.control.code import archive
from torchyard.control.yard import Yard
from torchyard.domain.command import script_path
from torchyard.domain.errors import Invalid, NotFound
from torchyard.domain.isolation import specs_of
from torchyard.domain.launch import ResumeSource
from torchyard.domain.project import Project
from torchyard.domain.spec import Submission
from torchyard.domain.workload import Workload
from torchyard.policy.rule import Folder, View
from torchyard.store import claims, projects, workloads
from torchyard.store.database import read


async def view(yard: Yard, submission: Submission, source: ResumeSource | None) -> View:
    """Everything that is known about a submission before it starts; `source` is the checkpoint that it resumes from."""
    engine = yard.engine(submission.cluster)
    nodes = await engine.nodes()
    devices = [device for node in nodes for device in node.devices]
    project, names, other = await asyncio.to_thread(_stored, yard, submission)
    missing = await _missing_checkpoint(yard, submission, source) if source else None
    return View(
        submission=submission,
        capabilities=engine.capabilities,
        devices=len(devices),
        device_kind=devices[0].kind if devices else "cpu",
        claims=names,
        folder=await asyncio.to_thread(_folder, yard, submission),
        quota=project.quota.most,
        resume_known=submission.torchyard.resume_from is None or other is not None,
        resume_file=missing,
        resume_own=await _own_instead(yard, other, source) if other and source and not missing else None,
    )


async def _missing_checkpoint(yard: Yard, submission: Submission, source: ResumeSource) -> str | None:
    """The file that a submission resumes from, when it is not there."""
    try:
        await yard.engine(submission.cluster).list_files(submission.project, source.claim, source.path)
    except NotFound:
        return f"{source.claim}:/{source.path}"
    return None


async def _own_instead(yard: Yard, other: Workload, source: ResumeSource) -> tuple[str, ...] | None:
    """What the other workload wrote, the newest first, when the checkpoint to resume from is not among it."""
    found = await checkpoints.listing(yard, other)
    named = next((c for c in found if (c.claim, c.path) == (source.claim, source.path)), None)
    if named is None or named.attempt is not None:
        return None
    return tuple(c.path for c in found if c.attempt is not None and c.complete)


def _stored(yard: Yard, submission: Submission) -> tuple[Project, tuple[str, ...], Workload | None]:
    """The project, its claims, and the workload to resume from."""
    with read(yard.database) as connection:
        project = projects.find(connection, submission.project)
        if project is None:
            known = ", ".join(p.name for p in projects.listing(connection))
            raise NotFound(f"there is no project {submission.project!r}", f"projects: {known}")
        names = tuple(c.claim_name for c in claims.listing(connection, submission.project))
        other = (submission.torchyard.resume_from or "").partition(":")[0]
        return project, names, workloads.find(connection, submission.project, other) if other else None


def _folder(yard: Yard, submission: Submission) -> Folder | None:
    """What is known of the folder that the command starts in; None when it can be seen in the replica only."""
    if submission.torchyard.code is not None:
        path = archive(yard.settings.data, submission.torchyard.code)
        if not path.exists():
            raise Invalid(
                f"the code {submission.torchyard.code[:19]} was not uploaded", "POST it to /api/v1/code first"
            )
        with tarfile.open(path) as tar:
            return Folder(path="the code folder", exists=True, readable=True, files=frozenset(tar.getnames()))
    folder = submission.spec.working_dir
    if folder is None or not folder.startswith("/") or submission.spec.image is not None:
        return None
    # os.path, since these answer no to whatever cannot be asked (a name that is too long, a folder of somebody else).
    exists = os.path.isdir(folder)  # noqa: PTH112
    readable = exists and os.access(folder, os.R_OK | os.X_OK)
    named = {script_path(spec) for spec in specs_of(submission)}
    there = set(os.listdir(folder)) if readable else set()  # noqa: PTH208
    files = frozenset(there | {s for s in named if s and os.path.isfile(os.path.join(folder, s))})  # noqa: PTH113, PTH118
    return Folder(path=folder, exists=exists, readable=readable, files=files)
