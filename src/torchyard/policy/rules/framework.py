"""A local cluster runs PyTorch: torchrun's rendezvous is the only one it sets up."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "framework"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    framework = view.submission.spec.distributed_framework
    if framework not in (None, "PyTorch"):
        yield Remark(
            "spec.distributedFramework",
            f"a local cluster does not run {framework} workloads",
            "distributedFramework: PyTorch, or leave it out",
        )
