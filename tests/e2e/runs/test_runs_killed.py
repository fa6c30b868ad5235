"""kill -9 at seeded points of runs, and two operators at once: the end is the same.

`make crash` kills at every call and every write of a run instead of twenty seeded ones.
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import pytest
from plain_api import create_namespace
from run_stage import QUICK, RunStage
from run_witness import kill_operator, opened, pushes

SEED = 20_240_601
EVERYWHERE = os.environ.get("ISSUESANDBOX_CRASH") == "everywhere"
KILLS = 20
# Each process of `make crash` takes some of the calls: all of them wait more than they work.
SHARES = 12
PATIENCE = 240.0
# A killed leader's lease must not cost the test its time.
LEASE = {"lease_duration": "800ms", "lease_hold": "600ms", "lease_retry": "200ms"}


def settings(runs: RunStage) -> dict[str, str]:
    timings = runs.stage.timings(**{**QUICK, **LEASE})
    return {**runs.credentials(), "ISSUESANDBOX_TIMINGS": timings}


class Ear:
    """Counts what Daytona and GitHub were asked, and what was written to resources."""

    def __init__(self, runs: RunStage) -> None:
        self._runs = runs
        self._seq = 0

    async def happenings(self) -> int:
        fresh = await self._runs.hub("GET", f"journal?since={self._seq}")
        self._seq = fresh[-1]["seq"] if fresh else self._seq
        return self._seq + await self._runs.stage.moments()


async def live(runs: RunStage, name: str) -> None:
    """One run, which ends as if nothing had happened."""
    number = await runs.run_issue(
        "append log.txt once", "tick 0.2 3 working", "summary Did it.", name=name
    )
    run = await runs.until_finished(name, seconds=PATIENCE)
    await check(runs, number, run)


async def check(runs: RunStage, number: int, run: dict[str, Any]) -> None:
    assert (run["outcome"], run.get("reason")) == ("Succeeded", None)
    assert run["changeTotals"]["additions"] == 1, "the agent ran once"
    (push,) = await pushes(runs, run["branch"])
    assert push["new"] == run["commit"]
    assert run["branch"] == f"claude-fix-issue-{number}"
    pull = run["pullRequest"]["number"]

    async def journaled() -> bool:
        # The other operator may have seen it before the request that opened it was answered.
        return pull in await opened(runs)

    await runs.stage.until(journaled, f"pull request {pull} to be opened")
    assert (await opened(runs)).count(pull) == 1
    (comment,) = await runs.comments(number)
    assert run["pullRequest"]["url"] in comment["body"]
    refs = await runs.refs()
    assert not [each for each in refs if "wip/" in each], "nothing was saved aside"


async def kill_again_and_again(runs: RunStage, points: list[int]) -> int:
    """Kill the operator each time so many more things have happened; return how often."""
    kills, ear = 0, Ear(runs)
    for calls in points:
        goal = await ear.happenings() + calls
        while await ear.happenings() < goal:
            await asyncio.sleep(0.005)
        await kill_operator(runs)
        kills += 1
        runs.stage.spawn_operator(**settings(runs))
    return kills


@pytest.mark.timeout(600)
async def test_runs_of_an_operator_that_is_killed_again_and_again_end_as_usual(
    runs: RunStage,
) -> None:
    # R11, R79
    chance = random.Random(SEED)
    points = [chance.randint(1, 40) for _ in range(KILLS)]
    await runs.stage.start_operator(**settings(runs))
    killer = asyncio.create_task(kill_again_and_again(runs, points))
    number = 0
    try:
        while not killer.done():
            await asyncio.gather(*(live(runs, f"run-{number + each}") for each in range(1, 4)))
            number += 3
    finally:
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)
    assert killer.result() == KILLS
    assert len(await opened(runs)) == number


async def give_the_model_key(runs: RunStage, home: str) -> None:
    """Let the operator that lives in `home` have the same Secret as the first one."""
    name = "issuesandbox-agent"
    place = f"/api/v1/namespaces/{runs.stage.namespace}/secrets/{name}"
    known = await runs.stage.api("GET", place)
    secret = {"metadata": {"name": name}, "data": known["data"]}
    await runs.stage.api("POST", f"/api/v1/namespaces/{home}/secrets", secret)


async def test_two_operators_that_act_at_once_do_everything_once(runs: RunStage) -> None:
    home = f"{runs.stage.namespace}-other"
    create_namespace(runs.stage.access, home)
    runs.stage.grant_rights(home)
    await give_the_model_key(runs, home)
    await asyncio.gather(
        runs.stage.start_operator(**settings(runs)),
        runs.stage.start_operator(home, **settings(runs)),
    )
    await asyncio.gather(*(live(runs, f"run-{each}") for each in range(1, 5)))
    assert len(await opened(runs)) == 4


if EVERYWHERE:

    @pytest.mark.timeout(1800)
    @pytest.mark.parametrize("share", range(SHARES))
    async def test_runs_whose_operator_is_killed_at_each_call_end_as_usual(
        runs: RunStage, share: int
    ) -> None:
        await runs.stage.start_operator(**settings(runs))
        ear = Ear(runs)
        before = await ear.happenings()
        await live(runs, "undisturbed")
        calls = range(1, await ear.happenings() - before + 1)[share::SHARES]
        print(f"killed at {list(calls)}")
        number = 0
        for call in calls:
            killer = asyncio.create_task(kill_again_and_again(runs, [call]))
            while not killer.done():
                # Some runs have fewer calls than the first: then the next one is hit.
                number += 1
                await live(runs, f"run-{number}")
            assert killer.result() == 1
        # The last one was killed too late to be needed by any of them.
        await live(runs, "at-last")
        assert len(await opened(runs)) == number + 2
