"""Where things lie in the data folder. Knows names only."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below one data folder."""

    data: Path

    def claim(self, project: str, claim: str) -> Path:
        """A claim is a folder of its project."""
        return self.data / "projects" / project / "claims" / claim

    def owns(self, folder: Path) -> bool:
        """It lies in the data folder, and is not one of the user's that a claim names."""
        return folder.resolve().is_relative_to(self.data.resolve())

    def workload(self, project: str, workload_id: str) -> Path:
        """All attempts of a workload."""
        return self.data / "projects" / project / "workloads" / workload_id

    def attempt(self, project: str, workload_id: str, number: int) -> Path:
        """An attempt's folder; once made it stays, so that the attempt can never start twice."""
        return self.workload(project, workload_id) / "attempts" / str(number)

    def code(self, digest: str) -> Path:
        """The archive of a folder that travelled."""
        return self.data / "code" / f"{digest.removeprefix('sha256:')}.tar.gz"
