"""Submissions that come twice at once, names that grow, and variables that must not be shown."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.control.yards import ANN, make_yard, submission
from torchyard.control import plans
from torchyard.control.submit import Request, seal_variables, submit
from torchyard.domain.errors import Invalid
from torchyard.engines.fake import FakeEngine, FakeWorld


@pytest.mark.parametrize("key", ["a key", None])
def test_the_same_request_twice_at_once_makes_one_workload(tmp_path: Path, key: str | None) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld()))
        request = Request(submission=submission(), environment={}, idempotency_key=key)
        first, second = await asyncio.gather(submit(yard, request, ANN), submit(yard, request, ANN))
        assert first.workload.id == second.workload.id
        assert sorted((first.replayed, second.replayed)) == [False, True]

    asyncio.run(story())


def test_a_prefix_leaves_room_for_its_number(tmp_path: Path) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld()))
        request = Request(submission=submission("a" * 61), environment={}, prefix=True)
        assert (await submit(yard, request, ANN)).workload.name == "a" * 61 + "-1"
        with pytest.raises(Invalid, match="at most 63"):
            await submit(yard, replace(request, submission=submission("a" * 62)), ANN)
        assert len(yard.board.all()) == 1

    asyncio.run(story())


@pytest.mark.parametrize(
    ("compute", "size"),
    [
        ({"largeShmRequest": True}, 2 * 2**30),
        ({"largeShmRequest": True, "cpuMemoryLimit": "4Gi"}, 2**30),
        ({}, 64 * 2**20),
    ],
)
def test_large_shared_memory_without_a_limit_is_of_the_nodes_memory(
    tmp_path: Path, compute: dict[str, Any], size: int
) -> None:
    """The fake's node has 16 GiB, and two replicas share it."""

    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld()))
        plan = await plans.draft(yard, submission(spec={"compute": compute}, isolation="sandbox"))
        assert [replica.shm for replica in plan.replicas] == [size, size]

    asyncio.run(story())


def test_an_excluded_secret_is_hidden_and_not_delivered() -> None:
    variables = [
        {"name": "HF_TOKEN", "value": "one", "exclude": True},
        {"name": "WANDB_API_KEY", "value": "two"},
        {"name": "EPOCHS", "value": "3"},
    ]
    clean, secret = seal_variables(submission(spec={"environmentVariables": variables}))
    assert secret == {"spec": {"WANDB_API_KEY": "two"}}
    assert [v.value for v in clean.spec.environment_variables] == ["(sealed)", "(sealed)", "3"]
