"""The folder that a command is to start in must be there: in the code, or on this machine and readable."""

import posixpath
from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.spec import Isolation
from torchyard.policy.rule import Folder, Remark, View

id = "working-folder"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        inside = posixpath.normpath(spec.working_dir or ".")
        if inside != "." and not inside.startswith(("/", "..")):
            yield from _in_code(view, f"{field}.workingDir", inside)
    folder = view.folder
    if folder is not None and view.isolation is not Isolation.CONTAINER and not view.mounted(folder.path):
        yield from _on_this_machine(view, folder)


def _in_code(view: View, where: str, path: str) -> Iterator[Remark]:
    if view.submission.torchyard.code is None:
        yield Remark(
            where,
            f"the working folder {path[:100]} is relative, and there is no code that it could be in",
            "write an absolute path, or give --code",
        )
    elif view.folder is not None and not view.folder.holds(path):
        yield Remark(where, f"there is no folder {path[:100]} in {view.folder.path}", "correct the path, or the folder")


def _on_this_machine(view: View, folder: Folder) -> Iterator[Remark]:
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
