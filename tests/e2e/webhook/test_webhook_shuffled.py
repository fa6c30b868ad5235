"""Deliveries in any order, repeated, lost, to several replicas at once: one truth in the end."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from webhook_recorder import deliver, recording
from webhook_stage import WebhookStage

from issuesandbox.domain.webhook.issue import text_trigger

ISSUES = 20
SEED = 20261116


async def _live(stage: WebhookStage, number: int, kind: int) -> str:
    """Let an issue live through ten events; return the trigger that it must have in the end."""

    async def act(verb: str, **body: Any) -> Any:
        # Some events share a second, as GitHub's times have no more than that.
        if kind % 2 or verb != "edit":
            stage.clock.ahead += timedelta(seconds=1)
        return await stage.act(number, verb, **body)

    for turn in range(5):
        await act("edit", title=f"Issue {number}", body=f"Text {turn} of {number}.")
    await act("label", names=["bug"])
    if kind % 4 == 0:
        await act("edit", body=f"Last text of {number}.")
        await act("edit", title=f"Last title of {number}")
        await act("unlabel", names=["bug"])
        return text_trigger(f"Last title of {number}", f"Last text of {number}.")
    if kind % 4 == 1:
        await act("close")
        await act("reopen")
        await act("label", names=["later"])
        return "reopen-"
    if kind % 4 == 2:
        await act("comment", body="/stop")
        await act("comment", body="only talk")
        made = await act("comment", body="/run once more")
        return f"c{made['id']}"
    await act("comment", body="/run", **{"as": "stranger"})
    await act("unlabel", names=["bug"])
    await act("close")
    return ""  # what was stopped has run whatever came before


async def test_two_hundred_shuffled_deliveries_end_in_twenty_right_resources(
    hook_stage: WebhookStage,
) -> None:
    stage, chance = hook_stage, random.Random(SEED)
    wanted: dict[int, str] = {}
    async with recording() as recorder:
        await stage.deliver_to(recorder.url)
        for kind in range(ISSUES):
            number = await stage.issue(f"New {kind}")
            wanted[number] = await _live(stage, number, kind)
        await stage.drained()
    assert len(recorder.got) == ISSUES * 10
    kept = [each for each in recorder.got if chance.random() >= 0.1]
    assert len(recorder.got) * 0.8 < len(kept) < len(recorder.got)
    many = kept * 3
    chance.shuffle(many)

    await stage.start(3, ISSUESANDBOX_CATCH_UP_EVERY="1h")
    seen: dict[int, list[str]] = defaultdict(list)
    async with _watched(stage, seen):
        await _deliver_all(stage, many, chance)
        await _catch_up(stage, wanted, seen)
    assert len(await stage.resources()) == ISSUES
    for each in await stage.resources():
        number = each["spec"]["issue"]["number"]
        stopped = (number - 1) % 4 == 3
        assert each["spec"]["desiredState"] == ("Stopped" if stopped else "Running"), number
        assert len(seen[number]) == len(set(seen[number])), f"a run came back: {seen[number]}"


async def _triggers(stage: WebhookStage, seen: dict[int, list[str]]) -> None:
    async for body in stage.watch():
        trigger = body["spec"]["run"]["trigger"]
        known = seen[body["spec"]["issue"]["number"]]
        if known[-1:] != [trigger]:
            known.append(trigger)


def _number_and_trigger(body: dict[str, Any]) -> tuple[int, str]:
    return body["spec"]["issue"]["number"], body["spec"]["run"]["trigger"]


async def _after(stage: WebhookStage, passes: int) -> bool:
    return await stage.passes() >= passes


async def _deliver_all(
    stage: WebhookStage, many: list[tuple[dict[str, str], bytes]], chance: random.Random
) -> None:
    at_once = asyncio.Semaphore(16)

    async def one(delivery: tuple[dict[str, str], bytes]) -> int:
        async with at_once:
            return await deliver(stage.http, chance.choice(stage.urls), delivery)

    statuses = await asyncio.gather(*(one(each) for each in many))
    assert set(statuses) <= {200, 202}


async def _catch_up(
    stage: WebhookStage, wanted: dict[int, str], seen: dict[int, list[str]]
) -> None:
    stage.adapters.spawn(ISSUESANDBOX_CATCH_UP_EVERY="1s")
    for child in stage.adapters.children[:-1]:
        assert await child.stop() == 0
    wrong: list[str] = []

    async def right() -> bool:
        found = await stage.resources()
        wrong[:] = [
            f"#{number}: {trigger} instead of {wanted[number]}, after {seen[number]}"
            for number, trigger in map(_number_and_trigger, found)
            if not trigger.startswith(wanted[number])
        ]
        return not wrong and len(found) == ISSUES

    try:
        await stage.until(right, "the right triggers", 30)
    finally:
        assert not wrong
    before = {number: list(found) for number, found in seen.items()}
    passes = await stage.passes()
    await stage.until(lambda: _after(stage, passes + 2), "two more catch-ups")
    assert seen == before, "a catch-up started what had been handled"


@asynccontextmanager
async def _watched(stage: WebhookStage, seen: dict[int, list[str]]) -> AsyncIterator[None]:
    watching = asyncio.create_task(_triggers(stage, seen))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
