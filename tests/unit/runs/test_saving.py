"""Work that was not published: where it is saved, and when nothing may be pushed."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runs.run_wire import Wire
from tests.unit.runs.run_world import World

from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.domain.publication import way_to_save

FAILS = {"profile": "custom", "command": ["sh", "-c", "echo a >a.txt; exit 3"]}
WORKS = {"profile": "custom", "command": ["sh", "-c", "echo a >a.txt"]}


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
