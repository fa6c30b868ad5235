"""A run that follows another one in the same sandbox: it resumes, and pays for itself alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from tests.unit.runs.run_wire import Wire
from tests.unit.runs.run_world import World

from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunPhase, TokenUsage
from issuesandbox.domain.runs import chapters

# Chooses its session itself, and tells what the whole of it has cost.
AGENT = r"""
echo "$ISSUESANDBOX_RESUME $ISSUESANDBOX_SESSION_ID" >>../told
echo x >>a.txt
cost=0.$(($(wc -l <../told) * 2))
echo '{"type":"result","is_error":false,"session_id":"own-1","total_cost_usd":'$cost'}'
"""


async def test_a_follow_up_resumes_the_session_and_counts_its_own_cost(tmp_path: Path) -> None:
    agent = {"profile": "custom", "command": ["sh", "-c", AGENT]}
    world = await World.build(tmp_path / "world", run={"agent": agent})
    world.place()
    async with asyncio.timeout(60):
        await world.live(Wire())
        first = world.run
        world.trigger("2")
        await world.live(Wire())
    told = [line.split() for line in (world.home / "told").read_text().splitlines()]
    assert [resumed for resumed, _ in told] == ["0", "1"]
    assert told[1][1] == first["sessionId"] == world.run["sessionId"] == "own-1"
    assert [run["usage"]["costUSD"] for run in (first, world.run)] == ["0.2", "0.2"]
    assert world.kube.read(world.key)["status"]["usage"]["costUSD"] == "0.4"


def test_what_a_run_used_is_added_up_once_though_its_outcome_came_first() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    run = {"id": "r1", "phase": "Executing", "startedAt": now.isoformat()}
    status = Status.model_validate({"run": run})
    ending = chapters.Ending(Outcome.TIMED_OUT, "AgentTimeout")
    status = chapters.ended(status, ending, RunPhase.COLLECTING, now)
    for _ in range(2):
        usage = TokenUsage(output_tokens=5, cost_usd="0.5")
        status = chapters.harvested(status, chapters.Harvest(usage=usage), now)
    assert status.usage is not None
    assert (status.usage.output_tokens, status.usage.cost_usd) == (5, "0.5")
