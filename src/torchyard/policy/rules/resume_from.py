"""A workload to resume from must be there."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "resume-from"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    name = (view.submission.torchyard.resume_from or "").partition(":")[0]
    if view.submission.torchyard.resume_from is not None and not name:
        yield Remark("torchyard.resumeFrom", "resumeFrom names no workload", "write WORKLOAD or WORKLOAD:FILE")
    elif not view.resume_known:
        yield Remark(
            "torchyard.resumeFrom",
            f"there is no workload {name[:63]!r} in project {view.submission.project} to resume from",
            "see `torchyard list`",
        )
    elif view.resume_file is not None:
        yield Remark(
            "torchyard.resumeFrom",
            f"there is no checkpoint {view.resume_file[:200]!r} to resume from",
            f"see `torchyard checkpoint list {name}`, and write {name}:FILE",
        )
