"""Kinds of storage that a local cluster cannot mount."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.policy.rule import Remark, View

id = "storage-kind"
severity = Severity.ERROR
FIX = "use a claim (storage.pvc): torchyard pvc create NAME, torchyard pvc cp FOLDER NAME:/"
KINDS = {
    "nfs": "NFS folders",
    "git": "git repositories",
    "s3": "S3 buckets",
    "host_path": "host paths",
    "config_map_volume": "config maps",
    "secret_volume": "secrets",
    "data_volume": "data volumes",
}


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        for name, words in KINDS.items():
            if getattr(spec.storage, name):
                alias = type(spec.storage).model_fields[name].alias
                yield Remark(f"{field}.storage.{alias}", f"a local cluster does not mount {words}", FIX)
