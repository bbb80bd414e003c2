"""A folder of this machine that a command is to start in must be there and readable."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.spec import Isolation
from torchyard.policy.rule import Remark, View

id = "working-folder"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    folder = view.folder
    if folder is None or view.isolation is Isolation.CONTAINER or view.mounted(folder.path):
        return
    extras = view.submission.torchyard
    if not folder.exists:
        # Code that travels is put there. An explicit `process` is always accepted, and an event tells the consequence.
        if extras.code is None and extras.isolation is not Isolation.PROCESS:
            yield Remark(
                "spec.workingDir",
                f"the working folder {folder.path} is not on this machine",
                "correct the path, or send the folder along with --code",
            )
    elif not folder.readable:
        yield Remark(
            "spec.workingDir",
            f"the working folder {folder.path} cannot be read by the server's user",
            "give that user the right to read and enter it",
        )
