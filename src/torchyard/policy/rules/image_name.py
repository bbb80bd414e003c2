"""The name of an image must be one that a container runtime can read."""

import re
from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "image-name"
severity = Severity.ERROR
# Source: the grammar of distribution/reference: [HOST[:PORT]/]PATH[:TAG][@DIGEST].
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])"
_IMAGE = re.compile(
    rf"(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        if spec.image is not None and _IMAGE.fullmatch(spec.image) is None:
            yield Remark(
                f"{field}.image",
                f"{spec.image[:100]!r} is no name of an image",
                "write it like pytorch/pytorch:2.9.0 or registry.example.com/team/train:1, in lower case",
            )
