"""What must not end a server."""

import asyncio
from pathlib import Path

import pytest

from tests.control.yards import make_yard, submission, submit_one
from torchyard.control import loop
from torchyard.control.notify import _send
from torchyard.domain.spec import Notify
from torchyard.domain.workload import Notice
from torchyard.engines.fake import FakeEngine, FakeWorld


def test_however_often_it_failed_it_is_tried_again() -> None:
    assert [loop._backoff(0.25, failures) for failures in (1, 5000)] == [0.5, loop.MAX_BACKOFF]


def test_a_part_that_fails_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_BACKOFF", 0.0)
    calls: list[int] = []

    async def work() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise asyncio.CancelledError
        raise OSError(24, "too many open files")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(loop._for_ever("work", work))
    assert len(calls) == 3


def test_a_notice_that_quotes_a_nul_is_delivered(tmp_path: Path) -> None:
    async def story() -> None:
        yard = make_yard(tmp_path, FakeEngine(FakeWorld()))
        workload = await submit_one(yard, submission())
        notice = Notice(kind="failed", sentence="bad \0 byte", at=workload.created_at)
        told = tmp_path / "told"
        command = f'printf %s "$TORCHYARD_NOTIFY_SENTENCE" > {told}'
        assert await _send(Notify(command=command), workload, notice) is None
        assert told.read_text() == "bad  byte"

    asyncio.run(story())
