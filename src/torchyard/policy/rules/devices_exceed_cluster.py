"""More devices than the cluster has can never be free."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "devices-exceed-cluster"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    asked = view.submission.devices
    if asked <= view.devices:
        return
    cpu = view.device_kind == "cpu"
    noun = ("CPU slot" if cpu else "device") + ("" if view.devices == 1 else "s")
    replicas = len(view.submission.replicas)
    spread = f" over {replicas} replicas" if replicas > 1 else ""
    fix = f"ask for {view.devices} at most"
    if cpu:
        fix += f", or start the server with TORCHYARD_CPU_SLOTS={asked} or more"
    yield Remark(
        "spec.compute.gpuDevicesRequest",
        f"asks for {asked} devices{spread}, and cluster {view.submission.cluster} has {view.devices} {noun}",
        fix,
    )
