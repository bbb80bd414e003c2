"""Several ranks in a pod's 64 MB of shared memory end with a bus error sooner or later."""

import posixpath
from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.spec import Isolation
from torchyard.policy.rule import Remark, View

id = "shared-memory"
severity = Severity.WARNING


def check(view: View) -> Iterator[Remark]:
    if view.isolation is Isolation.PROCESS:
        return
    for field, spec in view.specs:
        ranks = spec.compute.gpu_devices_request or 0
        own = any(posixpath.normpath(volume.path) == "/dev/shm" for volume in spec.storage.empty_dir_volume)
        if ranks > 1 and not spec.compute.large_shm_request and not own:
            yield Remark(
                f"{field}.compute.largeShmRequest",
                f"{ranks} ranks share a pod's 64 MB of /dev/shm: data loaders and NCCL may end with a bus error",
                "largeShmRequest: true (--large-shm)",
            )
