"""A push or a pull request that is only late, throttled or without an answer is no failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runs.run_wire import Fate, Wire
from tests.unit.runs.run_world import TIMINGS, World

from issuesandbox.clock import SystemClock
from issuesandbox.ports.errors import CallError, Denied, Throttled, Unavailable
from issuesandbox.ports.github import PullView

BRANCH = "claude-fix-issue-7"
# More often than anybody tries within one errand.
OFTEN = 6


async def lived(world: World, wire: Wire) -> dict[str, Any]:
    async with asyncio.timeout(60):
        await world.live(wire)
    return world.run


def before(call: str, happens: Callable[[Wire], None]) -> Wire:
    """Return a wire on which something happens once, right before a call."""
    wire = Wire(named=call)

    def interruption() -> None:
        wire.named = None
        happens(wire)

    wire.interruption = interruption
    return wire


async def check_success(world: World) -> None:
    run, hub = world.run, world.hub
    assert (run["outcome"], run.get("reason")) == ("Succeeded", None), run.get("message")
    assert hub.pushes == [(f"refs/heads/{BRANCH}", "0" * 40, run["commit"])]
    assert [each.number for each in hub.pulls] == [run["pullRequest"]["number"]]
    assert run["publish"]["confirmedAt"]
    assert "savedWork" not in run


@pytest.mark.parametrize("calls", [("create_pull",), ("create_pull", "open_pull"), ("get",)])
@pytest.mark.parametrize(
    "failure", [Throttled("secondary rate limit", retry_after=0.1), Unavailable("502")]
)
async def test_a_pull_request_waits_until_it_can_be_opened(
    calls: tuple[str, ...], failure: CallError, tmp_path: Path
) -> None:
    world = await World.build(tmp_path / "world")
    refusals = {call: [failure] * OFTEN for call in calls}
    wire = before("push", lambda wire: wire.refusals.update(refusals))
    await lived(world, wire)
    await check_success(world)
    assert list(wire.refusals.values()) == [[]] * len(calls)


async def test_a_pull_request_whose_answers_are_lost_is_found(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world")
    await lived(world, Wire(named="create_pull", fate=Fate.ANSWER_LOST))
    await check_success(world)


async def test_a_pull_request_that_somebody_opened_is_as_good(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world")

    def opened(wire: Wire) -> None:
        wire.refusals["create_pull"] = [Denied("no right")]
        world.hub.pulls.append(PullView(33, "https://hub/pull/33", "open", BRANCH, "", "main"))

    await lived(world, before("create_pull", opened))
    await check_success(world)


async def test_a_stop_is_heard_while_github_puts_us_off(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world")
    off = [Throttled("limit", retry_after=0.1) for _ in range(1000)]
    wire = before("push", lambda wire: wire.refusals.update(open_pull=off, create_pull=off))
    living = asyncio.create_task(lived(world, wire))
    while not world.run.get("publish", {}).get("confirmedAt"):
        await asyncio.sleep(0.02)
    world.stop()
    run = await living
    assert (run["outcome"], run["reason"]) == ("Cancelled", "TooLateToStop")
    assert world.hub.pulls == []


async def test_the_end_of_the_run_ends_the_patience(tmp_path: Path) -> None:
    limits = {"inactivity": "1s", "agent": "1s", "run": "4s"}
    world = await World.build(tmp_path / "world", run={"limits": limits})
    off: list[CallError] = [Unavailable("502") for _ in range(1000)]
    await lived(world, before("push", lambda wire: wire.refusals.update(create_pull=off)))
    run = world.run
    assert (run["outcome"], run["reason"]) == ("Failed", "PullRequestFailed")
    assert run["finishedAt"] >= run["deadlines"]["run"]
    assert BRANCH in run["message"]
    assert "savedWork" not in run


async def test_a_push_that_landed_though_no_answer_came_is_no_failed_push(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world")
    world.timings = replace(TIMINGS, work_hold=timedelta(milliseconds=200))
    await lived(world, Wire(named="push", fate=Fate.ANSWER_LOST))
    await check_success(world)


async def test_a_replica_that_takes_over_late_has_its_tries(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world")
    await lived(world, Wire(named="push", fate=Fate.DIES_BEFORE))
    long_ago = (SystemClock().now() - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    decided = {"status": {"run": {"publish": {"at": long_ago}}}}
    world.kube.edit(world.key.namespace, world.key.name, decided)
    await lived(world, Wire(refusals={"refs": [Unavailable("502")]}))
    await check_success(world)


async def test_work_goes_into_a_new_pull_request_if_the_old_one_is_merged(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world")
    await lived(world, Wire())
    world.trigger("2")

    def merged(_: Wire) -> None:
        world.hub.pulls[:] = [replace(each, state="merged") for each in world.hub.pulls]

    run = await lived(world, before("push", merged))
    assert (run["outcome"], run.get("reason")) == ("Succeeded", None)
    assert [each.state for each in world.hub.pulls] == ["merged", "open"]
    assert run["pullRequest"]["number"] == world.hub.pulls[1].number
