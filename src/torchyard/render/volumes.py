"""Claims and scratch space of a replica, and the variables that say where they are."""

import posixpath
import re
from collections.abc import Mapping

from torchyard.domain.launch import Mount, ResumeSource, Scratch
from torchyard.domain.quantities import parse_size
from torchyard.domain.spec import ReplicaSpec
from torchyard.render.shm import DEV_SHM

RESUME_FROM = "TORCHYARD_RESUME_FROM"


def volume_variable(claim: str) -> str:
    """`TORCHYARD_VOLUME_CHECKPOINTS`: the variable that holds the path at which a claim is seen."""
    return "TORCHYARD_VOLUME_" + re.sub(r"[^A-Z0-9]", "_", claim.upper())


def mounts_of(spec: ReplicaSpec, resume: ResumeSource | None = None) -> tuple[Mount, ...]:
    """What is mounted, the claim to resume from included. The shorter path first, so that none hides another."""
    mounts = [
        Mount(claim=pvc.claim_name, path=posixpath.normpath(pvc.path), read_only=pvc.read_only)
        for pvc in spec.storage.pvc
        if pvc.claim_name is not None and not pvc.exclude
    ]
    if resume is not None and all(mount.claim != resume.claim for mount in mounts):
        taken = {mount.path for mount in mounts}
        path = posixpath.normpath(resume.mount_path)
        mounts.append(Mount(claim=resume.claim, path=f"/resume-from/{resume.claim}" if path in taken else path))
    return tuple(sorted(mounts, key=lambda mount: mount.path.count("/")))


def scratch_of(spec: ReplicaSpec) -> tuple[Scratch, ...]:
    """Empty volumes, but the one that is shared memory."""
    return tuple(
        Scratch(
            path=posixpath.normpath(volume.path),
            memory=volume.medium == "Memory",
            size=parse_size(volume.size_limit) if volume.size_limit else None,
        )
        for volume in spec.storage.empty_dir_volume
        if posixpath.normpath(volume.path) != DEV_SHM
    )


def volume_variables(mounts: tuple[Mount, ...], resume: ResumeSource | None) -> dict[str, str]:
    """Where each claim is, and the checkpoint to resume from, as seen where claims are mounted."""
    env = {volume_variable(mount.claim): mount.path for mount in reversed(mounts)}
    if resume is not None:
        mount = next(mount for mount in mounts if mount.claim == resume.claim)
        env[RESUME_FROM] = posixpath.join(mount.path, resume.path)
    return env


def relocate(env: Mapping[str, str], mounts: tuple[Mount, ...], folders: Mapping[str, str]) -> dict[str, str]:
    """The environment where claims are not mounted but plain folders: `folders` says which, by claim."""
    moved = dict(env)
    for mount in mounts:
        folder = folders.get(mount.claim)
        if folder is None:
            continue
        moved[volume_variable(mount.claim)] = folder
        source = env.get(RESUME_FROM, "")
        if source == mount.path or source.startswith(f"{mount.path.rstrip('/')}/"):
            moved[RESUME_FROM] = posixpath.join(folder, posixpath.relpath(source, mount.path))
    return moved
