"""Every agent profile: a good end, a silence and a stop, with the same rules for all.

The supervisor, the shell and git are real, so is the scripted `claude`; the others are stand-ins
that do what the file they are pointed to says.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.fakes.stand_in_agents import CURSOR, CUSTOM
from tests.unit.runs.run_wire import Wire
from tests.unit.runs.run_world import World, stranger

from issuesandbox.local.agent.shim import install_claude

KEY = {"name": "ANTHROPIC_API_KEY", "value": "sk-ant-of-no-use-0123456789"}
AGENTS: dict[str, dict[str, Any]] = {
    "claude": {"profile": "claude", "env": [KEY]},
    "cursor": {"profile": "cursor"},
    "custom": {"profile": "custom", "command": ["own-agent"]},
}


def order(words: str, *steps: str) -> str:
    return "\n".join([words, "", "```scenario", *steps, "```"])


DONE = order("Just do it.", "write a.txt a", "say Did it.")
SILENT = order("Please be silent.", "stall 100")
ENDLESS = order(
    "Please talk for ever.", "bash (setsid sleep 1000 & echo $! >child) ; true", "forever 0.2"
)


@pytest.fixture(params=AGENTS)
def agent(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Each of the agents, on the PATH of the sandbox."""
    install_claude(tmp_path / "bin")
    for name, script in {"cursor-agent": CURSOR, "own-agent": CUSTOM}.items():
        program = tmp_path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return AGENTS[request.param]


async def ended(world: World) -> tuple[str, str | None]:
    async with asyncio.timeout(60):
        await world.live(Wire())
    return world.run["outcome"], world.run.get("reason")


async def test_a_good_end_is_published(agent: dict[str, Any], tmp_path: Path) -> None:
    world = await World.build(tmp_path / "world", run={"agent": agent, "prompt": DONE})
    assert await ended(world) == ("Succeeded", None), world.run
    assert [each["path"] for each in world.run["changes"]] == ["a.txt"]
    assert world.kube.read(world.key)["status"]["summary"]["text"] == "Did it."
    assert len(world.hub.pushes) == 1


async def test_a_silent_one_is_ended_and_publishes_nothing(
    agent: dict[str, Any], tmp_path: Path
) -> None:
    # R139
    limits = {"inactivity": "3s", "agent": "60s"}
    run = {"agent": agent, "prompt": SILENT, "limits": limits}
    world = await World.build(tmp_path / "world", run=run)
    living = asyncio.create_task(world.live(Wire()))
    async with asyncio.timeout(60):
        while "outcome" not in world.run:
            await asyncio.sleep(0.05)
        # In this world a sandbox is seen stopped only where that was asked for.
        world.stop()
        await living
    assert (world.run["outcome"], world.run["reason"]) == ("TimedOut", "InactivityTimeout")
    assert "publish" not in world.run
    assert world.hub.pulls == []


async def test_any_replica_kills_all_of_it_within_five_seconds(
    agent: dict[str, Any], tmp_path: Path
) -> None:
    # R49, R54, R139
    run = {"agent": agent, "prompt": ENDLESS, "limits": {"inactivity": "30s", "agent": "60s"}}
    world = await World.build(tmp_path / "world", run=run)
    living = asyncio.create_task(world.live(Wire()))
    child = world.home / "work" / "child"
    async with asyncio.timeout(60):
        while not (child.exists() and child.read_text().strip()):
            await asyncio.sleep(0.05)
        pid, asked = int(child.read_text()), time.monotonic()
        follower, assignment = stranger(world)
        killing = asyncio.create_task(follower.kill(assignment))
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.05)
        assert time.monotonic() - asked < 5
        await asyncio.gather(killing, living)
    # Whoever asked for that, it was not the resource.
    assert (world.run["outcome"], world.run["reason"]) == ("Failed", "AgentKilled")
    assert "publish" not in world.run
