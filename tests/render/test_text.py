"""What `torchyard render` shows: plain values, and no secret among them."""

import io

from ruamel.yaml import YAML
from tests.render.builders import CHECKPOINTS, submission

from torchyard.domain.observation import Capabilities
from torchyard.render.isolation import pick
from torchyard.render.launch import plan
from torchyard.render.text import show


def test_a_plan_is_shown_in_plain_values() -> None:
    variables = [{"name": "HF_TOKEN", "value": "hush"}, {"name": "LR", "value": "0.1"}]
    asked = submission(
        "distributed", storage={"pvc": [{**CHECKPOINTS, "readOnly": True}]}, environmentVariables=variables
    )
    choice = pick(asked, Capabilities(sandbox=True), folder_exists=True)
    shown = show(plan(asked, workload_id="id", attempt=1, choice=choice))
    text = io.StringIO()
    YAML(typ="safe").dump(shown, text)
    assert YAML(typ="safe").load(text.getvalue()) == shown
    assert "hush" not in text.getvalue()
    master = shown["replicas"][0]
    assert shown["isolation"] == "sandbox"
    assert shown["ranks"] == 2
    assert master["command"] == ["bash", "run.sh"]
    assert master["mounts"] == [{"claim": "checkpoints", "path": "/checkpoints", "readOnly": True}]
    assert master["sharedMemory"] == "64.0 MiB"
    assert master["environment"]["HF_TOKEN"] == "(sealed)"
    assert master["environment"]["LR"] == "0.1"
    assert "image" not in master
