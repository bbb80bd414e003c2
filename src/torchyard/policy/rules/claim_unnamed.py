"""A mount without a claim's name mounts nothing."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "claim-unnamed"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        for index, pvc in enumerate(spec.storage.pvc):
            if not pvc.exclude and pvc.claim_name is None:
                what = "an ephemeral claim" if pvc.ephemeral else "a claim without a name"
                yield Remark(
                    f"{field}.storage.pvc[{index}].claimName",
                    f"{what} is asked for at {pvc.path}; claims are made first and named here",
                    "torchyard pvc create NAME --size 10G, then claimName: NAME; for scratch space use emptyDirVolume",
                )
