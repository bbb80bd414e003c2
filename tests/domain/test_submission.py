"""Spec files and requests: one error with every problem in it, in plain words, and nothing secret repeated."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.domain.errors import Invalid, TooLarge
from torchyard.domain.spec import Kind
from torchyard.domain.submission import load_spec_file, parse_submission, parse_text

BASE: dict[str, Any] = {"kind": "distributed", "name": "ddp", "spec": {"command": "bash run.sh"}}


def refusal(**changes: object) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse_submission({**BASE, **changes})
    return caught.value


def test_the_spec_file_of_the_design() -> None:
    text = """
kind: distributed
name: ddp
project: default
cluster: local
spec:
  distributedFramework: PyTorch
  image: registry.example/pytorch-ddp:1
  command: bash run.sh
  numWorkers: 1
  compute: {gpuDevicesRequest: 1, largeShmRequest: true}
  storage: {pvc: [{claimName: checkpoints, path: /checkpoints, existingPvc: true}]}
  backoffLimit: 2
torchyard:
  code: .
  isolation: sandbox
  pendingDeadline: 15m
  progress: {total: 100, pattern: "Epoch (?P<step>\\\\d+)"}
"""
    file = load_spec_file(parse_text(text, "spec.yaml"))
    assert file.code == "."
    assert file.submission.torchyard.code is None
    assert file.submission.kind is Kind.DISTRIBUTED
    assert file.submission.replicas == ("master-0", "worker-0")
    assert file.submission.torchyard.progress is not None
    assert file.submission.torchyard.progress.pattern == r"Epoch (?P<step>\d+)"


@pytest.mark.parametrize(
    ("changes", "field", "details", "rule"),
    [
        ({"spec": {"numWorkers": "two"}}, "spec.numWorkers", "'two' is not a whole number", "options"),
        ({"spec": {"numWorkers": 2.5}}, "spec.numWorkers", "2.5 is not a whole number", "options"),
        ({"spec": {"numWorkres": 2}}, "spec.numWorkres", "no such field; did you mean numWorkers?", "options"),
        ({"projectId": "1"}, "projectId", "no such field; did you mean project?", "options"),
        ({"spec": {"tty": "maybe"}}, "spec.tty", "'maybe' is not true or false", "options"),
        ({"spec": {"command": 5}}, "spec.command", "5 is not text; write it in quotes", "options"),
        ({"spec": {"command": ""}}, "spec.command", "is empty", "min"),
        ({"spec": {"backoffLimit": 1000}}, "spec.backoffLimit", "1000 is too large; the most is 100", "max"),
        ({"spec": [1]}, "spec", "must be an object (`key: value`), not a list", "options"),
        ({"spec": None}, "spec", "is missing", "required"),
        ({"kind": None}, "kind", "is missing; choose training, distributed, workspace", "required"),
        (
            {"kind": "distrbuted"},
            "kind",
            "'distrbuted' is not one of training, distributed, workspace; did you mean distributed?",
            "options",
        ),
        (
            {"spec": {"compute": {"cpuMemoryRequest": "ten"}}},
            "spec.compute.cpuMemoryRequest",
            "'ten' is not a size; write a number and a unit, such as 10T, 10TB, 10Ti or 500M",
            "options",
        ),
        (
            {"spec": {"storage": {"pvc": [{"path": "here"}]}}},
            "spec.storage.pvc[0].path",
            "must be an absolute path: begin with /",
            "options",
        ),
        ({"spec": {"storage": {"pvc": [{"claimName": "a"}]}}}, "spec.storage.pvc[0].path", "is missing", "required"),
        (
            {"torchyard": {"maxTime": "soon"}},
            "torchyard.maxTime",
            "'soon' is not a duration; write a number and a unit, such as 90s, 15m, 1h30m or 2d",
            "options",
        ),
        ({"spec": {"command": "a\0b"}}, "spec.command", "holds a character that no text has", "options"),
        ({"apiVersion": "v1"}, "apiVersion", "this is a Kubernetes manifest, not a spec file", "options"),
    ],
)
def test_each_mistake_has_a_field_a_sentence_and_a_rule(
    changes: dict[str, object], field: str, details: str, rule: str
) -> None:
    error = refusal(**changes)
    assert [(p.field, p.details, p.rule) for p in error.problems] == [(field, details, rule)]
    assert error.message == f"{field}: {details}"


def test_all_mistakes_come_in_one_error() -> None:
    error = refusal(name="Bad_Name", spec={"numWorkers": "two", "compute": {"gpuDevicesRequest": -1}}, nmae=1)
    assert [p.field for p in error.problems] == ["name", "spec.compute.gpuDevicesRequest", "spec.numWorkers", "nmae"]


def test_many_mistakes_stay_readable() -> None:
    error = refusal(spec={f"wrong{i}": 1 for i in range(50)})
    assert len(error.problems) == 50
    assert error.message.endswith("and 45 more")


@pytest.mark.parametrize("name", ["x" * 10_000, "X" * 10_000, "é" * 10_000])
def test_a_name_of_10_kb_is_one_short_message(name: str) -> None:
    error = refusal(name=name)
    assert error.message == "name: has 10,000 characters; at most 63 are allowed"


def test_a_long_unknown_key_is_cut() -> None:
    assert len(refusal(**{"x" * 10_000: 1}).message) < 200


@pytest.mark.parametrize(
    "spec",
    [
        {"environmentVariables": {"HF_TOKEN": "hush-hush"}},
        {"environmentVariables": [{"name": "HF_TOKEN", "vlaue": "hush-hush"}]},
        {"environmentVariables": [{"name": "HF_TOKEN", "value": ["hush-hush"]}]},
        {"environmentVariables": ["HF_TOKEN=hush-hush"]},
        {"annotations": [{"name": "a", "value": {"hush-hush": "hush-hush"}}]},
        {"probes": "hush-hush"},
    ],
)
def test_values_that_may_be_secret_are_never_repeated(spec: dict[str, object]) -> None:
    error = refusal(spec=spec)
    assert "hush" not in error.message + str(error.problems)


def test_a_number_as_a_secret_is_not_repeated_either() -> None:
    error = refusal(
        spec={"environmentVariables": [{"name": "PIN", "value": 271828}]}, torchyard={"notify": {"webhook": 271828}}
    )
    assert "271828" not in error.message + str(error.problems)


def test_nulls_count_as_left_out() -> None:
    submission = parse_submission({**BASE, "spec": {"command": "x", "numWorkers": None, "sshAuthMountPath": None}})
    assert submission.spec.num_workers is None


def test_the_file_stands_before_the_sentence() -> None:
    with pytest.raises(Invalid, match=r"^spec\.yaml: spec\.numWorkers: 'two' is not a whole number$"):
        parse_submission({**BASE, "spec": {"numWorkers": "two"}}, where="spec.yaml")


@pytest.mark.parametrize("data", [None, [], "x", 5, [BASE]])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(Invalid, match="begins with `kind:`"):
        parse_submission(data)


def test_depth_is_bounded() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert "nested too deep" in refusal(spec={"probes": deep}).message


def test_a_content_hash_is_no_path() -> None:
    digest = "sha256:" + "a" * 64
    file = load_spec_file({**BASE, "torchyard": {"code": digest}})
    assert (file.code, file.submission.torchyard.code) == (None, digest)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
keys = st.sampled_from(["kind", "name", "project", "spec", "masterSpec", "torchyard", "cluster"])


@given(st.dictionaries(keys, json_like, max_size=4))
def test_anything_is_a_submission_or_one_error_with_problems(data: dict[str, object]) -> None:
    try:
        parse_submission(data)
    except Invalid as error:
        assert error.problems
        assert len(error.message) < 2000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.json",
            '{"a": 1,\n "b": [1, 2,],\n}',
            "a.json: line 2, column 12: a comma too many: nothing follows it before `]`",
        ),
        ("a.json", '{"a": 1,\n}', "a.json: line 1, column 8: a comma too many: nothing follows it before `}`"),
        ("-", '{"a": 1,}', "-: line 1, column 8: a comma too many: nothing follows it before `}`"),
        ("a.json", '{"a": 1', "a.json: line 1, column 8: the text ends too early: a bracket or a quote is not closed"),
        ("a.json", '{"a": 1, "a": 2}', "a.json: 'a' is given twice in one object"),
        ("a.json", '{"a": NaN}', "a.json: NaN is not a JSON number"),
        ("a.yaml", "a: 1\nb: 2\na: 2", 'a.yaml: line 3, column 1: found duplicate key "a"'),
        ("a.yaml", "a:\n\tb: 1", "a.yaml: line 2, column 1: a tab where only spaces may indent"),
        (
            "a.yaml",
            "a: 1\n---\nb: 2",
            "a.yaml: line 2, column 1: a second document begins here; a spec file is one document",
        ),
        ("a.yaml", "a: b: c", "a.yaml: line 1, column 5: mapping values are not allowed here"),
        ("a.yaml", "a: *b", "a.yaml: line 1, column 4: found undefined alias 'b'"),
        ("a.yaml", "a: \x01", "a.yaml: line 1, column 4: a character that no text has"),
        ("a.yaml", "[" * 5000, "a.yaml: is nested too deep"),
        ("a.json", "[" * 100_000, "a.json: is nested too deep"),
        ("a.yaml", " \n", "a.yaml: is empty"),
    ],
)
def test_text_that_cannot_be_read(name: str, text: str, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_text(text, name)
    assert caught.value.message == message


def test_no_code_runs_from_yaml() -> None:
    with pytest.raises(Invalid, match="line 1"):
        parse_text("a: !!python/object/apply:os.getcwd []", "a.yaml")


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "-"])
def test_ten_megabytes_are_refused_unread(name: str) -> None:
    with pytest.raises(TooLarge, match="10,000,000 characters"):
        parse_text("[" * 10_000_000, name)


@pytest.mark.parametrize("shape", ["[{0},{0},{0},{0},{0},{0},{0},{0},{0}]", "{{<<: [{0}, {0}, {0}, {0}]}}"])
def test_bombs_of_aliases_are_refused(shape: str) -> None:
    lines = ["k0: &k0 {a: b}"]
    lines += [f"k{i}: &k{i} {shape.format(f'*k{i - 1}')}" for i in range(1, 30)]
    with pytest.raises(TooLarge, match="aliases"):
        parse_text("\n".join(lines), "a.yaml")


def test_a_value_inside_itself_is_refused() -> None:
    with pytest.raises(TooLarge, match="aliases"):
        parse_text("a: &a [*a]", "a.yaml")


def test_honest_aliases_and_merges_work() -> None:
    text = "base: &base {a: 1, b: 2}\nmine:\n  <<: *base\n  b: 3\nlist: [*base, *base]"
    assert parse_text(text, "-") == {
        "base": {"a": 1, "b": 2},
        "mine": {"a": 1, "b": 3},
        "list": [{"a": 1, "b": 2}, {"a": 1, "b": 2}],
    }


def test_json_is_read_as_json_and_yaml_as_yaml() -> None:
    assert parse_text('{"a": [1, true, null]}', "a.json") == {"a": [1, True, None]}
    assert parse_text("a: yes\nb: 0o17\n", "a.yml") == {"a": "yes", "b": 15}
    assert parse_text("{a: 1,}", "-") == {"a": 1}


@given(st.text(max_size=200), st.sampled_from(["a.yaml", "a.json", "-"]))
def test_any_text_is_a_value_or_one_error(text: str, name: str) -> None:
    try:
        parse_text(text, name)
    except Invalid as error:
        assert error.message.startswith(f"{name}: ")
    except TooLarge:
        assert "*" in text


def test_a_variable_that_a_file_sets_twice_is_a_slip() -> None:
    variables = [{"name": "LR", "value": value} for value in ("0.1", "0.2")]
    twice = {**BASE, "spec": {**BASE["spec"], "environmentVariables": variables}}
    with pytest.raises(Invalid, match="LR is set twice"):
        load_spec_file(twice)
    assert len(parse_submission(twice).spec.environment_variables) == 2
