"""An operator of another version takes over: agents that run are followed and stopped as before."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest
from tests.unit.runs.run_wire import Wire
from tests.unit.runs.run_world import World, stranger

from issuesandbox import inside


def another_version(patch: pytest.MonkeyPatch) -> None:
    """Let every shell file have another text than it has now."""
    script = inside.script
    text = {name: script(name) + b"# another version\n" for name in ("supervisor.sh", "collect.sh")}
    patch.setattr(inside, "script", lambda name: text[name])
    patch.setattr(inside, "digest", lambda name: sha256(text[name]).hexdigest())


@pytest.mark.parametrize("killed", [False, True])
async def test_another_version_goes_on_with_an_agent_that_runs(
    killed: bool, tmp_path: Path
) -> None:
    waits = "echo once >>log.txt; until [ -e ../go ]; do sleep 0.1; done"
    agent = {"profile": "custom", "command": ["sh", "-c", waits]}
    world = await World.build(tmp_path / "world", run={"agent": agent})
    with pytest.MonkeyPatch.context() as patch:
        another_version(patch)
        old = asyncio.create_task(world.live(Wire()))
        async with asyncio.timeout(60):
            while "agentStartedAt" not in world.run:
                await asyncio.sleep(0.05)
        old.cancel()
        await asyncio.gather(old, return_exceptions=True)
    if killed:
        follower, assignment = stranger(world)
        # Raises unless nothing is left.
        await follower.kill(assignment)
        return
    (world.home / "go").touch()
    wire = Wire()
    async with asyncio.timeout(60):
        await world.live(wire)
    assert world.run["outcome"] == "Succeeded", world.run
    assert world.run["changeTotals"]["additions"] == 1, "the agent ran once"
    assert wire.calls.count("upload") == 1, "its supervisor was brought once"
