"""Whether the quotas of projects fit into that of their department. Pure."""

from collections.abc import Iterable

from torchyard.domain.project import Department, Project


def misfit(department: Department, projects: Iterable[Project]) -> str | None:
    """Why these projects, all that the department has, cannot have their quotas; None: they fit."""
    whole = department.quota.most
    if whole is None:
        return None
    members = tuple(projects)
    unbounded = next((project.name for project in members if project.quota.most is None), None)
    has = f"department {department.name} has a quota of {whole}"
    if unbounded is not None:
        return f"{has}, and project {unbounded} has none, so it could take more"
    together = sum(project.quota.most or 0 for project in members)
    return f"{has}, and its projects would have {together} together" if together > whole else None
