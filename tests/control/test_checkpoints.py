"""Whose checkpoint is it? On a shared claim several workloads write."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.control.yards import make_yard, submission, submit_one
from torchyard.control.checkpoints import LATE, _checkpoint
from torchyard.diagnosis.checkpoint import CheckpointCheck
from torchyard.domain.observation import FileEntry
from torchyard.domain.workload import Attempt
from torchyard.engines.fake import FakeEngine, FakeWorld


def test_a_file_belongs_to_the_attempt_that_it_was_written_in(tmp_path: Path) -> None:
    async def story() -> None:
        workload = await submit_one(make_yard(tmp_path, FakeEngine(FakeWorld())), submission())
        begun = workload.created_at
        minute = timedelta(minutes=1)
        first = Attempt(number=1, reason="", created_at=begun, ended_at=begun + minute)
        second = Attempt(number=2, reason="", created_at=begun + 2 * minute, ended_at=begun + 3 * minute)
        whole = CheckpointCheck(format="torch", complete=True)

        def writer(after: timedelta, *attempts: Attempt) -> int | None:
            entry = FileEntry(path="snapshot.pt", folder=False, size=1, modified_at=begun + after)
            return _checkpoint("checkpoints", entry, whole, workload, attempts).attempt

        assert writer(-minute, first) is None
        assert writer(minute / 2, first, second) == 1
        assert writer(2.5 * minute, first, second) == 2
        assert writer(3 * minute + LATE / 2, first, second) == 2
        assert writer(4 * minute, first, second) is None
        assert writer(4 * minute, first, replace(second, ended_at=None)) == 2

    asyncio.run(story())
