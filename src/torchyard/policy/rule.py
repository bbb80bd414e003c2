"""What a rule is, what it looks at and what it says. A rule knows the view and nothing else."""

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torchyard.domain.finding import Severity
from torchyard.domain.isolation import choose, mount_paths, specs_of
from torchyard.domain.observation import Capabilities
from torchyard.domain.spec import Isolation, ReplicaSpec, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The folder that a command starts in, as the server sees it. `files` are relative paths; None: not looked at."""

    path: str
    exists: bool
    readable: bool
    files: frozenset[str] | None = None

    def holds(self, path: str) -> bool:
        """A file or folder of this relative path is in it; yes where nobody has looked."""
        clean = posixpath.normpath(path)
        names = (posixpath.normpath(name) for name in self.files or ())
        return self.files is None or clean == "." or any(f"{name}/".startswith(f"{clean}/") for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that is known of a submission before it starts. `devices` are all of the cluster's, busy or not."""

    submission: Submission
    capabilities: Capabilities
    devices: int
    device_kind: str
    claims: tuple[str, ...]
    """Claims of the project, by claim name."""
    folder: Folder | None
    quota: int | None = None
    """Devices that its project may hold; None: as many as there are."""
    resume_known: bool = True
    """The workload of `resumeFrom` is there, or none is named."""
    resume_file: str | None = None
    """The file of `resumeFrom` that is not on its claim."""
    resume_own: tuple[str, ...] | None = None
    """What the workload of `resumeFrom` wrote itself, when the file that is named was written by something else."""

    @property
    def specs(self) -> tuple[tuple[str, ReplicaSpec], ...]:
        """The replicas' specs with the field that each stands in."""
        own = self.submission.spec
        return tuple(("spec" if spec is own else "masterSpec", spec) for spec in specs_of(self.submission))

    @property
    def isolation(self) -> Isolation:
        """What it will most likely be; for warnings only, since the working folder may not have been looked at."""
        here = self.folder is not None and self.folder.exists and self.folder.path == self.submission.spec.working_dir
        return choose(self.submission, folder_exists=here).isolation

    def mounted(self, path: str) -> bool:
        """The path lies on a mount of the workload."""
        return any(path == mount or path.startswith(f"{mount.rstrip('/')}/") for mount in self._mounts)

    @property
    def _mounts(self) -> tuple[str, ...]:
        return tuple(path for _, spec in self.specs for path in mount_paths(spec))


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule found: where (dotted field), what is wrong and why, how to mend it."""

    where: str
    message: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by its name. All its remarks have one severity."""

    id: str
    severity: Severity
    check: Callable[[View], Iterable[Remark]]
