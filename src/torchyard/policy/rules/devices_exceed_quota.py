"""More devices than its project may hold: it waits until the quota is raised."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "devices-exceed-quota"
severity = Severity.WARNING


def check(view: View) -> Iterator[Remark]:
    asked = view.submission.devices
    if view.quota is not None and asked > view.quota:
        project = view.submission.project
        quota = f"the quota of project {project} is {view.quota}"
        yield Remark(
            "spec.compute.gpuDevicesRequest",
            f"asks for {asked} devices, and {quota}: it cannot start before that is raised",
            f"ask for {view.quota} at most, or raise it: torchyard project update {project} --quota {asked}",
        )
