"""Somebody has to say what runs. An image may know it by itself."""

from collections.abc import Iterator

from torchyard.domain.command import argv_of
from torchyard.domain.errors import Invalid
from torchyard.domain.finding import Severity
from torchyard.domain.spec import Isolation
from torchyard.policy.rule import Remark, View

id = "command-missing"
severity = Severity.ERROR
FIX = "say `--command -- bash run.sh`, or in a spec `command: bash run.sh`"


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        try:
            argv = argv_of(spec, field)
        except Invalid as error:
            yield Remark(f"{field}.command", error.message, error.details)
            continue
        if spec.command is None:
            if view.isolation is not Isolation.CONTAINER:
                also = " (args alone are not a command without an image)" if spec.args else ""
                yield Remark(f"{field}.command", f"there is no command: say what to run{also}", FIX)
        elif not argv or not argv[0].strip():
            yield Remark(f"{field}.command", "the command is empty: say what to run", FIX)
