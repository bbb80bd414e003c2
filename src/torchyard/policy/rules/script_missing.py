"""The file that Python, torchrun or a shell is told to run must be in the folder."""

import difflib
import posixpath
from collections.abc import Iterator

from torchyard.domain.command import script_path
from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "script-missing"
severity = Severity.ERROR


def check(view: View) -> Iterator[Remark]:
    folder = view.folder
    if folder is None or folder.files is None or not folder.exists:
        return
    files = {posixpath.normpath(file) for file in folder.files}
    for field, spec in view.specs:
        path = script_path(spec)
        if path is None or path in files or (spec.working_dir and view.mounted(spec.working_dir)):
            continue
        if spec.working_dir and not spec.working_dir.startswith("/") and not folder.holds(spec.working_dir):
            continue  # The folder itself is what is wrong.
        near = difflib.get_close_matches(path, sorted(files)[:2000], n=1, cutoff=0.7)
        meant = f"; did you mean {near[0]}?" if near else ""
        yield Remark(
            f"{field}.command", f"there is no {path} in {folder.path}{meant}", "correct the name or the folder"
        )
