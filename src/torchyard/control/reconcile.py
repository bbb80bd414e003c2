"""One workload, one look: observe, diagnose, decide, write once, act. Safe to be cut off at any point."""

import asyncio

from torchyard.control import evidence, notify, plans
from torchyard.control.turn import Turn, turn
from torchyard.control.yard import Yard
from torchyard.domain.decision import (
    Decision,
    Deliver,
    Effect,
    Hindered,
    Observed,
    Prepare,
    Prepared,
    Refused,
    Remove,
    Removed,
    Start,
    Started,
    Stop,
    Tick,
)
from torchyard.domain.errors import NotFound, TorchyardError, Unavailable
from torchyard.engines.engine import Busy

_ROUNDS = 8
"""More rounds than any workload needs; a guard against a loop of decisions."""


async def reconcile(yard: Yard, workload_id: str) -> Decision | None:
    """Bring one workload as far as it can be brought now. None when it is gone."""
    try:
        async with turn(yard, workload_id) as mine:
            decision = await _look(yard, mine)
            done: set[Effect] = set()
            for _ in range(_ROUNDS):
                todo = [e for e in decision.effects if e not in done and not isinstance(e, Deliver)]
                if not todo:
                    break
                done.add(todo[0])
                decision = await _act(yard, mine, todo[0], decision)
    except NotFound:
        return None
    for effect in decision.effects:
        if isinstance(effect, Deliver):
            notify.post(yard, workload_id, effect.notice)
    return decision


async def _look(yard: Yard, mine: Turn) -> Decision:
    attempt = mine.workload.attempt
    if attempt is None or attempt.over or attempt.handle is None:
        return await mine.apply(Tick())
    observation = await yard.engine(mine.workload.cluster).observe(attempt.handle)
    if not observation.over:
        return await mine.apply(Observed(observation=observation))
    diagnosis = await evidence.diagnose(yard, mine.workload, observation)
    checkpointed = await evidence.checkpointed(yard, mine.workload) if diagnosis.cause else False
    return await mine.apply(Observed(observation=observation, diagnosis=diagnosis, checkpointed=checkpointed))


async def _act(yard: Yard, mine: Turn, effect: Effect, decision: Decision) -> Decision:
    engine = yard.engine(mine.workload.cluster)
    match effect:
        case Prepare():
            try:
                handle = await engine.prepare(await plans.plan(yard, mine.workload))
            except Unavailable as hindrance:
                await mine.apply(Hindered(sentence=hindrance.whole))
                raise
            except TorchyardError as refusal:
                return await mine.apply(Refused(sentence=refusal.whole, busy=False))
            return await mine.apply(Prepared(handle=handle))
        case Start():
            try:
                await engine.start(effect.handle, await asyncio.to_thread(plans.secrets, yard, mine.workload))
            except Busy as refusal:
                return await mine.apply(Refused(sentence=refusal.whole, busy=True))
            except Unavailable as hindrance:
                await mine.apply(Hindered(sentence=hindrance.whole))
                raise
            except TorchyardError as refusal:
                return await mine.apply(Refused(sentence=refusal.whole, busy=False))
            return await mine.apply(Started(handle=effect.handle))
        case Stop():
            await engine.stop(effect.handle, effect.grace, effect.sentence)
            return await mine.apply(Tick())
        case Remove():
            await engine.remove(mine.workload.project, mine.workload.id)
            await asyncio.to_thread(plans.forget_secrets, yard, mine.workload)
            return await mine.apply(Removed())
        case Deliver():
            return decision
