"""An existing claim must be there: a new empty one in its place would hide a wrong name."""

import difflib
from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "claim-missing"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        for index, pvc in enumerate(spec.storage.pvc):
            name = pvc.claim_name
            new = pvc.claim_info is not None and not pvc.existing_pvc
            if pvc.exclude or new or name is None or name in view.claims:
                continue
            near = difflib.get_close_matches(name, view.claims, n=1, cutoff=0.6)
            meant = f"; did you mean {near[0]}?" if near else ""
            size = pvc.claim_info.size if pvc.claim_info and pvc.claim_info.size else "10G"
            yield Remark(
                f"{field}.storage.pvc[{index}].claimName",
                f"there is no claim {name!r} in project {view.submission.project}{meant}",
                f"torchyard pvc create {name} --size {size} --path {pvc.path}",
            )
