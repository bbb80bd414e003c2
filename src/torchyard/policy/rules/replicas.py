"""How many replicas: fields of a group need a group, and a group needs a member."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.spec import Kind
from torchyard.policy.rule import Remark, View

id = "replicas"
severity = Severity.ERROR
FIX = "kind: distributed"


def check(view: View) -> Iterator[Remark]:
    yield from _single(view) if view.submission.kind is not Kind.DISTRIBUTED else _group(view)


def _single(view: View) -> Iterator[Remark]:
    submission, kind = view.submission, view.submission.kind.value
    if submission.spec.num_workers:
        yield Remark("spec.numWorkers", f"a {kind} has one replica, and numWorkers asks for more", FIX)
    if submission.master_spec is not None:
        yield Remark("masterSpec", f"a {kind} has no master", FIX)
    for name, number in (("parallelism", submission.spec.parallelism), ("completions", submission.spec.completions)):
        if number not in (None, 1):
            yield Remark(f"spec.{name}", f"a {kind} runs once, and {name} is {number}", "leave it out")


def _group(view: View) -> Iterator[Remark]:
    submission, spec = view.submission, view.submission.spec
    if not submission.replicas:
        yield Remark("spec.numWorkers", "there is no master and no worker: nothing would run", "numWorkers: 1 or more")
    if submission.torchyard.no_master and submission.master_spec is not None:
        yield Remark("masterSpec", "masterSpec is given, and noMaster says that there is none", "drop one of the two")
    if spec.min_replicas and spec.max_replicas and spec.min_replicas > spec.max_replicas:
        what = f"minReplicas ({spec.min_replicas}) is more than maxReplicas ({spec.max_replicas})"
        yield Remark("spec.minReplicas", what, "exchange the two")
