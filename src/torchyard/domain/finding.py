"""What a policy rule says of a spec."""

import enum
from dataclasses import dataclass


class Severity(enum.StrEnum):
    """Errors refuse a submission; warnings stay on the workload and are shown."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: which rule, where (dotted field), what is wrong and why, and how to mend it."""

    rule: str
    severity: Severity
    where: str
    message: str
    fix: str | None = None
