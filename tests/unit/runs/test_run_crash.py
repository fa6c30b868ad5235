"""Killed at any call, or with any answer lost, a run ends as if nothing had happened.

The matrix is made from the calls that the undisturbed run makes, so a new call is in it by
itself. `make crash` disturbs every call in every way, else each call is disturbed in one.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.unit.runs.run_wire import Fate, Wire
from tests.unit.runs.run_world import World

EVERYWHERE = os.environ.get("ISSUESANDBOX_CRASH") == "everywhere"
# How many runs go on side by side: each waits most of the time.
SIDE_BY_SIDE = 16


# Not in the work tree, where it would be a change.
SET_UP = {"setup": ["echo once >>../set_up"]}


async def undisturbed(folder: Path) -> list[str]:
    wire = Wire()
    world = await World.build(folder, run=SET_UP)
    await world.live(wire)
    await check(world)
    return wire.calls


async def check(world: World) -> None:
    """Check that everything was done, and done once."""
    run, hub = world.run, world.hub
    assert (run["outcome"], run.get("reason")) == ("Succeeded", None), run.get("message")
    refs = await hub.refs()
    branch = "refs/heads/claude-fix-issue-7"
    assert hub.pushes == [(branch, "0" * 40, run["commit"])]
    assert set(refs) == {"refs/heads/main", branch}
    assert len(hub.pulls) == 1
    assert len(hub.comments) == 1
    assert run["changeTotals"]["additions"] == 1, "the agent ran once"
    assert (world.home / "set_up").read_text() == "once\n"


async def disturb(folder: Path, place: int, fate: Fate) -> str | None:
    world = await World.build(folder, run=SET_UP)
    try:
        async with asyncio.timeout(60):
            await world.live(Wire(place, fate=fate))
            await world.live(Wire())
        await check(world)
    except (AssertionError, TimeoutError) as error:
        return f"{error or 'it never ended'}"
    return None


@pytest.mark.timeout(400)
@pytest.mark.parametrize("fate", Fate)
async def test_a_run_that_is_disturbed_at_any_call_ends_as_usual(
    fate: Fate, tmp_path: Path
) -> None:
    calls = await undisturbed(tmp_path / "undisturbed")
    assert {"clone", "execute", "push", "create_pull", "patch_status"} <= set(calls)
    places = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(place: int) -> str | None:
        async with places:
            return await disturb(tmp_path / str(place), place, fate)

    share = 1 if EVERYWHERE else len(Fate)
    chosen = [each for each in range(len(calls)) if (each + fate.value) % share == 0]
    ends = await asyncio.gather(*(one(place) for place in chosen))
    wrong = {f"{each}: {calls[each]}": end for each, end in zip(chosen, ends, strict=True) if end}
    assert wrong == {}


async def test_two_operators_that_drive_one_run_do_everything_once(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "two", run=SET_UP)
    await asyncio.gather(world.live(Wire()), world.live(Wire()))
    await check(world)


async def stop_at(folder: Path, place: int) -> str:
    """Stop a run right before one of its calls; return how it ended."""
    world = await World.build(folder)
    async with asyncio.timeout(60):
        await world.live(Wire(place, interruption=world.stop))
    log = [body for _, body in world.kube.log]
    stopped = [body["spec"].get("desiredState") == "Stopped" for body in log]
    gated = ["publish" in body.get("status", {}).get("run", {}) for body in log]
    if True not in stopped:
        return "Succeeded"  # it had fewer calls than the undisturbed one
    gate = gated.index(True) if True in gated else None
    run, hub = world.run, world.hub
    if gate is None or stopped[gate]:
        assert gate is None, f"{place}: decided after the stop"
        assert hub.pushes == [], f"{place}: pushed after the stop"
        assert hub.pulls == []
        assert run.get("outcome", "Cancelled") == "Cancelled"
        return "Cancelled"
    assert len(hub.pushes) == 1, f"{place}: a decided push always happens"
    if run["outcome"] == "Succeeded":
        assert len(hub.pulls) == 1
        return "Succeeded"
    assert (run["outcome"], run["reason"]) == ("Cancelled", "TooLateToStop")
    assert hub.pulls == []
    return "TooLateToStop"


@pytest.mark.timeout(400)
async def test_a_stop_before_any_call_either_beats_the_gate_or_comes_too_late(
    tmp_path: Path,
) -> None:
    # R49, R56
    calls = await undisturbed(tmp_path / "undisturbed")
    places = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(place: int) -> str:
        async with places:
            return await stop_at(tmp_path / str(place), place)

    last = len(calls) - calls[::-1].index("patch_status")
    ends = await asyncio.gather(*(one(place) for place in range(last)))
    assert set(ends) == {"Cancelled", "TooLateToStop", "Succeeded"}


async def test_a_stop_after_a_lost_pull_request_names_it(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "stopped")
    await world.live(Wire(named="create_pull", fate=Fate.DIES_AFTER))
    world.stop()
    await world.live(Wire())
    run = world.run
    assert (run["outcome"], run["reason"]) == ("Cancelled", "TooLateToStop")
    assert run["pullRequest"]["number"] == world.hub.pulls[0].number
