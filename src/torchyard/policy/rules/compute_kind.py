"""Parts of devices and resources by name: a local cluster gives whole devices only."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.spec import Compute
from torchyard.policy.rule import Remark, View

id = "compute-kind"
severity = Severity.ERROR
FIX = "ask for whole devices with gpuDevicesRequest"


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        for name, what in _asked(spec.compute):
            yield Remark(f"{field}.compute.{name}", f"a local cluster gives whole devices, not {what}", FIX)


def _asked(compute: Compute) -> Iterator[tuple[str, str]]:
    if compute.gpu_portion_request not in (None, 0, 1):
        yield "gpuPortionRequest", f"{compute.gpu_portion_request:g} of one"
    if compute.gpu_memory_request is not None:
        yield "gpuMemoryRequest", "a share of their memory"
    if any(not resource.exclude for resource in compute.extended_resources or ()):
        yield "extendedResources", "resources by other names"
