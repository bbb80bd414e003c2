"""Variables whose value a local cluster cannot look up."""

from collections.abc import Iterator

from torchyard.domain.finding import Severity
from torchyard.domain.spec import EnvironmentVariable
from torchyard.policy.rule import Remark, View

id = "variable-source"
severity = Severity.ERROR
FIX = "give its value; a name that ends in TOKEN, KEY, SECRET or PASSWORD is kept sealed"
POD_FIELDS = ("metadata.name", "metadata.namespace")


def check(view: View) -> Iterator[Remark]:
    for field, spec in view.specs:
        for index, variable in enumerate(spec.environment_variables):
            source = None if variable.exclude else _source(variable)
            if source is not None:
                yield Remark(
                    f"{field}.environmentVariables[{index}]",
                    f"the value of {variable.name} comes from {source}, which a local cluster does not have",
                    FIX,
                )


def _source(variable: EnvironmentVariable) -> str | None:
    if variable.secret is not None:
        return "a secret"
    if variable.config_map is not None:
        return "a config map"
    if variable.user_credential is not None:
        return "a credential"
    if variable.pod_field_ref is not None and variable.pod_field_ref.path not in POD_FIELDS:
        return f"the pod's {variable.pod_field_ref.path[:60]}"
    return None
