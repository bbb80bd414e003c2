"""Fields that place and guard pods: accepted, so that one spec serves everywhere, and without effect here."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "no-meaning"
severity = Severity.WARNING
FIELDS = (
    "node_pools",
    "node_type",
    "node_affinity_required",
    "pod_affinity",
    "tolerations",
    "preemptibility",
    "terminate_after_preemption",
    "auto_deletion_time_after_completion_seconds",
    "restart_policy",
    "probes",
    "security",
    "image_pull_secrets",
    "create_home_dir",
    "tty",
    "stdin",
)
LIMITS = ("cpu_core_limit", "cpu_memory_limit", "gpu_portion_limit", "gpu_memory_limit")


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        for name in FIELDS:
            if getattr(spec, name):
                alias = type(spec).model_fields[name].alias
                yield Remark(f"{field}.{alias}", f"{alias} has no meaning on a local cluster")
        for name in LIMITS:
            if getattr(spec.compute, name):
                alias = type(spec.compute).model_fields[name].alias
                yield Remark(f"{field}.compute.{alias}", f"{alias} is not enforced on a local cluster")
