"""Submissions as tests write them."""

from typing import Any

from torchyard.domain.spec import Submission
from torchyard.domain.submission import parse_submission

CHECKPOINTS = {"claimName": "checkpoints", "path": "/checkpoints", "existingPvc": True}


def submission(kind: str = "training", /, **changes: Any) -> Submission:
    """A submission of one command; `torchyard` and `masterSpec` apart, keywords are fields of the spec."""
    body: dict[str, Any] = {"kind": kind, "name": "ddp"}
    for name in ("torchyard", "masterSpec"):
        if name in changes:
            body[name] = changes.pop(name)
    body["spec"] = {"command": "bash run.sh", **changes}
    return parse_submission(body)
