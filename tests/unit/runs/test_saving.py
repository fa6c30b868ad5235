"""Work that was not published: where it is saved, and when nothing may be pushed."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from datetime import timedelta
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runs.run_wire import Wire
from tests.unit.runs.run_world import TIMINGS, World

from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.domain.publication import way_to_save
from issuesandbox.domain.runs.chapters import WORKSPACE_LOST

FAILS = {"profile": "custom", "command": ["sh", "-c", "echo a >a.txt; exit 3"]}
WORKS = {"profile": "custom", "command": ["sh", "-c", "echo a >a.txt"]}
SHORT = replace(TIMINGS, work_hold=timedelta(seconds=2), rescue_hold=timedelta(seconds=4))


async def finished(world: World, wire: Wire) -> dict[str, Any]:
    async with asyncio.timeout(60):
        await world.live(wire)
    return world.run


async def test_nothing_is_pushed_during_a_pause_and_it_is_made_up_for(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world", run={"agent": FAILS})
    world.place()
    wire = Wire(named="write_token", interruption=world.pause)
    living = asyncio.create_task(world.live(wire))
    async with asyncio.timeout(60):
        # The next command after that is a kill: the pause was seen.
        while "execute" not in "".join(wire.calls).partition("write_token")[2]:
            await asyncio.sleep(0.05)
        assert world.hub.pushes == []
        assert world.run["phase"] == "Collecting"
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)
    world.pause(None)
    run = await finished(world, Wire())
    assert run["savedWork"]["kind"] == "Branch"
    assert [ref for ref, _, _ in world.hub.pushes] == [f"refs/heads/{run['savedWork']['ref']}"]


async def test_nothing_is_pushed_after_a_stop(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world", run={"agent": FAILS})
    run = await finished(world, Wire(named="write_token", interruption=world.stop))
    assert run["outcome"] == "Failed"
    assert "savedWork" not in run
    assert world.hub.pushes == []


@pytest.mark.parametrize("save", ["Branch", "Off"])
async def test_work_that_the_remote_refuses_is_kept_as_a_patch(save: str, tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world", run={"agent": WORKS}, recovery={"saveWork": save})
    world.hub.refuses = True
    run = await finished(world, Wire())
    assert (run["outcome"], run["reason"]) == ("Failed", "PublishFailed")
    if save == "Off":
        assert "savedWork" not in run
        return
    assert run["savedWork"]["kind"] == "Patch"
    assert "+a" in world.kube.config_maps[run["savedWork"]["ref"]]["patch"]


async def test_a_remote_that_is_away_for_a_while_gets_the_branch_all_the_same(
    tmp_path: Path,
) -> None:
    world = await World.build(tmp_path / "world", run={"agent": FAILS})
    world.hub.unanswered = 6
    run = await finished(world, Wire())
    assert (run["outcome"], run["savedWork"]["kind"]) == ("Failed", "Branch")
    assert [ref for ref, _, _ in world.hub.pushes] == [f"refs/heads/{run['savedWork']['ref']}"]
    assert WORKSPACE_LOST not in {each.reason for each in world.events}


async def test_a_branch_that_moved_is_not_forgotten_because_the_remote_goes_away(
    tmp_path: Path,
) -> None:
    world = await World.build(tmp_path / "world", run={"agent": WORKS})

    def moved() -> None:
        ref = "refs/heads/claude-fix-issue-7"
        subprocess.run(["git", "-C", world.hub.bare, "update-ref", ref, "main"], check=True)

    wire = Wire(named="push", interruption=moved)
    world.hub.unanswered = 6
    run = await finished(world, wire)
    assert (run["outcome"], run["reason"]) == ("Failed", "BranchMoved")
    assert run["savedWork"]["kind"] == "Branch"


async def test_what_no_remote_takes_in_time_is_kept_as_a_patch(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world", run={"agent": FAILS})
    world.timings, world.hub.unanswered = SHORT, inf
    run = await finished(world, Wire())
    assert (run["outcome"], run["savedWork"]["kind"]) == ("Failed", "Patch")
    assert "+a" in world.kube.config_maps[run["savedWork"]["ref"]]["patch"]
    assert WORKSPACE_LOST not in {each.reason for each in world.events}


@pytest.mark.parametrize("save", ["Branch", "Off"])
async def test_work_that_can_be_saved_nowhere_is_told_as_lost(save: str, tmp_path: Path) -> None:
    command = ["sh", "-c", "head -c 999999 /dev/urandom | base64 >a.txt; exit 3"]
    agent = {"profile": "custom", "command": command}
    recovery = {"saveWork": save}
    world = await World.build(tmp_path / "world", run={"agent": agent}, recovery=recovery)
    world.timings, world.hub.unanswered = SHORT, inf
    run = await finished(world, Wire())
    assert (run["outcome"], run["reason"]) == ("Failed", "AgentFailed")
    assert "savedWork" not in run
    told = [each for each in world.events if each.reason == WORKSPACE_LOST]
    assert [each.warning for each in told] == ([True] if save == "Branch" else [])
    assert all(run["id"] in each.message and "502" in each.message for each in told)


async def test_a_stop_during_the_push_opens_no_pull_request(tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world", run={"agent": WORKS})
    run = await finished(world, Wire(named="push", interruption=world.stop))
    assert (run["outcome"], run["reason"]) == ("Cancelled", "TooLateToStop")
    assert len(world.hub.pushes) == 1
    assert world.hub.pulls == []


@pytest.mark.parametrize("code", [0, 3])
async def test_work_with_a_key_in_it_is_not_pushed_anywhere(code: int, tmp_path: Path) -> None:
    command = ["sh", "-c", f"env | grep MODEL >a.txt; exit {code}"]
    agent = {"profile": "custom", "command": command, "envFrom": [{"secretRef": {"name": "s"}}]}
    world = await World.build(tmp_path / "world", run={"agent": agent})
    world.kube.secrets["s"] = {"MODEL_KEY": (key := "planted-key-0123456789")}
    run = await finished(world, Wire())
    assert (run["outcome"], run["reason"]) == ("Failed", "AgentFailed" if code else "SecretInWork")
    assert world.hub.pushes == []
    assert run["savedWork"]["kind"] == "Patch"
    patch = world.kube.config_maps[run["savedWork"]["ref"]]["patch"]
    assert "+MODEL_KEY=***" in patch
    assert key not in patch


def test_no_branch_without_leave_to_publish_and_no_patch_that_goes_with_its_resource() -> None:
    found = {
        (asked, publishes, deleting): way_to_save(asked, publishes=publishes, deleting=deleting)
        for asked, publishes, deleting in product(SaveWork, (True, False), (True, False))
    }
    for (asked, publishes, deleting), kind in found.items():
        assert kind is not SaveWork.BRANCH or publishes
        assert kind is not SaveWork.PATCH or not deleting
        assert (asked is SaveWork.OFF) <= (kind is SaveWork.OFF)
    assert found[SaveWork.PATCH, True, True] is SaveWork.BRANCH
    assert found[SaveWork.BRANCH, False, False] is SaveWork.PATCH
