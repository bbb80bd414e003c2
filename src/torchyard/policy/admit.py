"""One fold over all rules. Knows no single rule: a file in `rules` or an entry point is one."""

import functools

from torchyard import discover
from torchyard.domain.finding import Finding, Severity
from torchyard.policy.rule import Rule, View

RULES = "torchyard.policy.rules"
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All rules there are, by their file names."""
    return tuple(Rule(module.id, module.severity, module.check) for module in discover.load(RULES))


def admit(view: View) -> tuple[Finding, ...]:
    """What the rules say of a submission, errors first. It may run when none is an error."""
    findings = [
        Finding(rule=rule.id, severity=rule.severity, where=remark.where, message=remark.message, fix=remark.fix)
        for rule in rules()
        for remark in rule.check(view)
    ]
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))
