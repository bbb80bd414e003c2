"""A workload to begin with, and strategies that make whole ones."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from torchyard.domain.cause import Cause, Diagnosis, Fault
from torchyard.domain.finding import Finding, Severity
from torchyard.domain.launch import Handle
from torchyard.domain.observation import LostBecause, RankSeen, ReplicaSeen, ReplicaState
from torchyard.domain.spec import Kind, Submission
from torchyard.domain.workload import Attempt, Desired, Ending, EndingBecause, Notice, Phase, Workload

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make(name: str = "ddp", **more: Any) -> Workload:
    """A workload as it is right after its submission, but for what is said otherwise."""
    submission = Submission.model_validate({"kind": "training", "name": name, "spec": {"command": "true"}})
    plain = Workload(
        id=f"id-{name}",
        name=name,
        kind=submission.kind,
        project="default",
        cluster="local",
        submission=submission,
        created_at=NOW,
        created_by="ann",
        phase=Phase.CREATING,
        phase_at=NOW,
    )
    return replace(plain, **more)


moments = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))
texts = st.text(max_size=30)
_words = st.text(min_size=1, max_size=20)
_counts = st.integers(0, 50)


def some(strategy: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[Any]:
    """A tuple of a few."""
    return st.lists(strategy, max_size=most).map(tuple)


ranks = st.builds(
    RankSeen,
    rank=_counts,
    local_rank=st.integers(0, 7),
    pid=st.integers(1, 10**6),
    started_at=moments,
    ended_at=st.none() | moments,
    code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    restart=_counts,
)
replicas = st.builds(
    ReplicaSeen,
    name=st.sampled_from(["master-0", "worker-0"]),
    state=st.sampled_from(list(ReplicaState)),
    started_at=st.none() | moments,
    code=st.none() | st.integers(0, 255),
    lost=st.none() | st.sampled_from(list(LostBecause)),
    stopped=st.booleans(),
    message=st.none() | texts,
    devices=some(st.integers(0, 7), 8),
    ranks=some(ranks),
    left_behind=some(texts),
)
diagnoses = st.builds(
    Diagnosis,
    cause=st.none() | st.sampled_from(list(Cause)),
    sentence=texts,
    fault=st.none() | st.builds(Fault, replica=st.just("worker-0"), at=st.none() | moments, last_lines=some(texts)),
    step=st.none() | _counts,
    hint=st.none() | texts,
)
attempts = st.builds(
    Attempt,
    number=st.integers(1, 50),
    reason=texts,
    created_at=moments,
    devices=st.integers(0, 8),
    handle=st.none() | st.builds(Handle, cluster=texts, key=texts, ref=texts),
    started=st.booleans(),
    running_at=st.none() | moments,
    ending=st.none()
    | st.builds(
        Ending,
        because=st.sampled_from(list(EndingBecause)),
        at=moments,
        grace=st.floats(0, 1e6),
        sentence=texts,
    ),
    ended_at=st.none() | moments,
    replicas=some(replicas),
    diagnosis=st.none() | diagnoses,
    withdrawn=st.booleans(),
)

_paths = _words.map(lambda word: f"/{word}")
_free = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
_variables = st.fixed_dictionaries(
    {"name": st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True)},
    optional={"value": texts, "secret": st.fixed_dictionaries({"name": _words}), "exclude": st.booleans()},
)
_claims = st.fixed_dictionaries(
    {"path": _paths},
    optional={"existingPvc": st.booleans(), "readOnly": st.booleans(), "claimInfo": st.just({"size": "10Ti"})},
)
_specs = st.fixed_dictionaries(
    {"command": _words},
    optional={
        "args": _words,
        "image": _words,
        "workingDir": texts,
        "environmentVariables": st.lists(_variables, max_size=3),
        "compute": st.fixed_dictionaries(
            {},
            optional={
                "gpuDevicesRequest": _counts,
                "cpuCoreRequest": st.floats(0, 64),
                "cpuMemoryRequest": st.just("4Gi"),
            },
        ),
        "storage": st.fixed_dictionaries({}, optional={"pvc": st.lists(_claims, max_size=2)}),
        "backoffLimit": st.integers(0, 100),
        "nodeAffinityRequired": st.dictionaries(texts, _free, max_size=2),
        "labels": st.lists(st.fixed_dictionaries({"name": _words, "value": texts}), max_size=2),
    },
)
submissions = st.builds(
    lambda kind, spec, workers, master, extras: Submission.model_validate(
        {
            "kind": kind,
            "spec": spec | ({"numWorkers": workers} if kind is Kind.DISTRIBUTED else {}),
            "masterSpec": master if kind is Kind.DISTRIBUTED else None,
            "torchyard": extras,
        }
    ),
    st.sampled_from(list(Kind)),
    _specs,
    _counts,
    st.none() | _specs,
    st.fixed_dictionaries(
        {},
        optional={
            "code": st.just("sha256:" + "0" * 64),
            "isolation": st.sampled_from(["process", "sandbox", "container"]),
            "trustExitCode": st.booleans(),
            "resumeFrom": texts,
        },
    ),
)
workloads = st.builds(
    make,
    submission=submissions,
    phase=st.sampled_from(list(Phase)),
    phase_at=moments,
    reason=texts,
    desired=st.sampled_from(list(Desired)),
    findings=some(st.builds(Finding, rule=texts, severity=st.sampled_from(list(Severity)), where=texts, message=texts)),
    sealed=st.booleans(),
    attempt=st.none() | attempts,
    user_faults=_counts,
    last_fault=st.none() | texts,
    best_step=st.none() | _counts,
    not_before=st.none() | moments,
    completed_at=st.none() | moments,
    deleted_at=st.none() | moments,
    notices=some(st.builds(Notice, kind=st.just("failed"), sentence=texts, at=moments)),
    run_seconds=st.floats(0, 1e9),
)
