"""Services and addresses that only a network of pods has."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "network"
severity = Severity.ERROR
FIX = "leave it out: a port that the command opens is reached on this machine"


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        for index, port in enumerate(spec.ports or ()):
            if port.external is not None or port.service_type in ("LoadBalancer", "NodePort"):
                yield Remark(
                    f"{field}.ports[{index}]", f"a local cluster does not expose port {port.container} elsewhere", FIX
                )
        if spec.exposed_urls:
            yield Remark(f"{field}.exposedUrls", "a local cluster has no addresses to expose", FIX)
