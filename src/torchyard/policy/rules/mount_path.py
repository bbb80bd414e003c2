"""Two mounts cannot share a path, and none may cover what a replica cannot live without."""

import posixpath
from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.isolation import mount_paths
from torchyard.policy.rule import Remark, View

id = "mount-path"
severity = Severity.ERROR
COVERED = ("/", "/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/lib", "/lib64", "/run")


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        seen: set[str] = set()
        for path in mount_paths(spec):
            clean = posixpath.normpath(path)
            clean = clean[1:] if clean.startswith("//") else clean
            if ".." in path.split("/"):
                yield Remark(f"{field}.storage", f"the mount path {path} leads upwards (..)", "write it out")
            elif clean in COVERED or clean.startswith(("/proc/", "/sys/")):
                yield Remark(
                    f"{field}.storage", f"a mount at {path} would hide the system's own", "choose a path of its own"
                )
            elif clean in seen:
                yield Remark(f"{field}.storage", f"two volumes are mounted at {clean}", "give each its own path")
            seen.add(clean)
