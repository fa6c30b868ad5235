"""kill -9 at seeded points of many lives: the end is the same, nothing leaks, nothing is stuck.

`make crash` kills at every call and every write of the story instead of twenty seeded ones.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal

import pytest
from operator_stage import Stage

SEED = 20_240_601
EVERYWHERE = os.environ.get("ISSUESANDBOX_CRASH") == "everywhere"
KILLS = 20
# Each process of `make crash` takes some of the calls: all of them wait more than they work.
SHARES = 12
# Each kill throws away what the process saw, so twenty of them take their time.
PATIENCE = 240.0
# A killed leader's lease must not cost the test its time.
TIMINGS = Stage.timings(lease_duration="800ms", lease_hold="600ms", lease_retry="200ms")


async def live(stage: Stage, number: int) -> None:
    """One resource's life with everything that can happen to it."""
    name = f"issue-{number}"
    await stage.apply(name, number)
    status = await stage.until_phase(name, "Idle", PATIENCE)
    await stage.admin("POST", f"sandboxes/{status['sandbox']['id']}/stop", {})

    async def started_again() -> bool:
        # Not by its counter: a kill between the call and its record loses that.
        shown = await stage.daytona_get(status["sandbox"]["id"])
        return bool(shown["state"] == "started")

    await stage.until(started_again, f"{name} to be started", PATIENCE)
    status = await stage.until_phase(name, "Idle", PATIENCE)
    await stage.admin("POST", f"sandboxes/{status['sandbox']['id']}/destroy", {})

    async def recreated() -> bool:
        now = await stage.status(name)
        fresh = now["sandbox"].get("id") not in (None, status["sandbox"]["id"])
        return fresh and now["phase"] == "Idle"

    await stage.until(recreated, f"{name} to be recreated", PATIENCE)
    await stage.delete(name)
    await stage.until_gone(name, PATIENCE)


async def kill_again_and_again(stage: Stage, points: list[int]) -> int:
    """Kill the operator each time so many more things have happened; return how often."""
    kills = 0
    for calls in points:
        goal = await stage.moments() + calls
        while await stage.moments() < goal:
            await asyncio.sleep(0.002)
        victim = stage.operators.pop()
        os.kill(victim.pid, signal.SIGKILL)
        await victim.wait()
        kills += 1
        stage.spawn_operator(ISSUESANDBOX_TIMINGS=TIMINGS)
    return kills


@pytest.mark.timeout(600)
async def test_an_operator_killed_at_seeded_points_ends_like_one_that_was_not(
    stage: Stage,
) -> None:
    # R11, R79
    chance = random.Random(SEED)
    points = [chance.randint(1, 16) for _ in range(KILLS)]
    await stage.start_operator(ISSUESANDBOX_TIMINGS=TIMINGS)
    killer = asyncio.create_task(kill_again_and_again(stage, points))
    number = 0
    try:
        while not killer.done():
            await asyncio.gather(*(live(stage, number + each) for each in range(1, 5)))
            number += 4
    finally:
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)
    assert killer.result() == KILLS
    assert await stage.sandboxes() == []


if EVERYWHERE:

    @pytest.mark.timeout(1800)
    @pytest.mark.parametrize("share", range(SHARES))
    async def test_an_operator_killed_at_each_call_ends_like_one_that_was_not(
        stage: Stage, share: int
    ) -> None:
        await stage.start_operator(ISSUESANDBOX_TIMINGS=TIMINGS)
        before = await stage.moments()
        await live(stage, 1)
        calls = range(1, await stage.moments() - before + 1)[share::SHARES]
        print(f"killed at {list(calls)}")
        number = 1
        for call in calls:
            killer = asyncio.create_task(kill_again_and_again(stage, [call]))
            while not killer.done():
                # Some lives have fewer calls than the first: then the next one is hit.
                number += 1
                await live(stage, number)
            assert killer.result() == 1
            assert await stage.sandboxes() == [], f"killed at call {call}"
        # The last one was killed too late to be needed by any of them.
        await live(stage, number + 1)
