"""More replicas than the cluster takes, where no device limits them: each is several processes of the machine."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "replicas-exceed-cluster"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    asked, most = len(view.submission.replicas), view.capabilities.replicas
    if most is not None and asked > most:
        yield Remark(
            "spec.numWorkers",
            f"asks for {asked} replicas, and cluster {view.submission.cluster} takes {most} of a workload at most",
            f"ask for {most} replicas at most, the master among them",
        )
