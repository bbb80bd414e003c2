"""Asks the queue who may start now, for every cluster, and tells the others why they wait."""

import logging
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from torchyard.control import plans
from torchyard.control.turn import now, turn
from torchyard.control.yard import Yard
from torchyard.domain.decision import Granted, Queued
from torchyard.domain.errors import Invalid, NotFound
from torchyard.domain.observation import Device, Node
from torchyard.domain.workload import Phase, Workload
from torchyard.policy.queue import Holder, Share, pick
from torchyard.render.launch import world
from torchyard.store import projects

log = logging.getLogger("torchyard.queue")


async def schedule(yard: Yard) -> None:
    """Grant devices to those whose turn it is; they are rung for."""
    clusters: dict[str, list[Workload]] = defaultdict(list)
    for workload in yard.board.all():
        clusters[workload.cluster].append(workload)
    for cluster, members in clusters.items():
        waiting = [w for w in members if w.waiting]
        if waiting and cluster in yard.engines:
            await _schedule(yard, cluster, waiting, [w for w in members if w.active])


async def _schedule(yard: Yard, cluster: str, waiting: list[Workload], active: list[Workload]) -> None:
    engine = yard.engine(cluster)
    needy = any(w.submission.devices for w in waiting)
    nodes: tuple[Node, ...] = await engine.nodes() if needy else ()
    keys = {w.attempt.handle.key for w in active if w.attempt and w.attempt.handle}
    devices = [device for node in nodes for device in node.devices]
    foreign = [d for d in devices if d.held_by is not None and d.held_by not in keys]
    picked = pick(
        tuple(waiting),
        total=len(devices),
        foreign=tuple(_whose(device) for device in foreign),
        holders=_holders(active),
        shares=await _shares(yard) if needy else {},
        now=now(),
    )
    for workload in picked.starts:
        try:
            await _grant(yard, workload)
        except Exception:
            # It must not hold up those behind it; the loop comes back to it.
            log.exception("%s could not be granted its start", workload.name)
    for workload in waiting:
        sentence = picked.sentences.get(workload.id)
        if sentence is None:
            yard.board.why_waiting.pop(workload.id, None)
        elif yard.board.why_waiting.get(workload.id) != sentence:
            yard.board.why_waiting[workload.id] = sentence
            await _tell(yard, workload, sentence)


def _holders(active: Iterable[Workload]) -> tuple[Holder, ...]:
    return tuple(Holder(name=w.name, devices=w.attempt.devices) for w in active if w.attempt and w.attempt.devices)


async def _shares(yard: Yard) -> dict[str, Share]:
    """Of the projects that have a quota. It counts over all clusters."""
    active = [w for w in yard.board.all() if w.active]
    return {
        project.name: Share(quota=most, holders=_holders(w for w in active if w.project == project.name))
        for project in await yard.reading(projects.listing)
        if (most := project.quota.most) is not None
    }


def _whose(device: Device) -> str:
    """Of a device that no workload of this server holds."""
    if not device.ours:
        return device.held_by or ""
    return f"{device.workload or device.held_by} of another server of yours"


async def _grant(yard: Yard, workload: Workload) -> None:
    try:
        async with turn(yard, workload.id) as mine:
            notes: tuple[str, ...] = ()
            if mine.workload.attempts == 0:
                # A plan that has become impossible is refused, with its sentence, when it is prepared.
                with suppress(Invalid):
                    notes = (await plans.draft(yard, mine.workload.submission, mine.workload.resume, workload.id)).notes
            await mine.apply(Granted(sentence=world(mine.workload.submission), notes=notes))
    except NotFound:
        return
    yard.bell.ring(workload.id)


async def _tell(yard: Yard, workload: Workload, sentence: str) -> None:
    """The first sentence is remembered; later ones are only announced."""
    if workload.phase is Phase.PENDING:
        yard.feed.publish(workload.id, "workload")
        return
    try:
        async with turn(yard, workload.id) as mine:
            await mine.apply(Queued(sentence=sentence))
    except NotFound:
        return
