"""Every agent profile: a good end, a stop and a silence, with the same rules for all."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from run_stage import RunStage, scenario
from sandbox_sight import processes_of
from tests.fakes.stand_in_agents import CURSOR, CUSTOM

AGENTS: dict[str, dict[str, Any]] = {
    "claude": {},
    "cursor": {"profile": "cursor"},
    "custom": {"profile": "custom", "command": ["own-agent"]},
}
ORDERS = {
    "done": scenario("write a.txt a", "say Did it."),
    "silent": "Please be silent.\n" + scenario("stall 100"),
    "stopped": "Please talk for ever.\n" + scenario("nohup 1000", "forever 0.2"),
}


async def test_a_good_end_a_silence_and_a_stop_are_the_same_for_every_agent(
    runs: RunStage, tmp_path: Path
) -> None:
    # R139
    for name, script in {"cursor-agent": CURSOR, "own-agent": CUSTOM}.items():
        program = tmp_path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)
    await runs.start_operator()
    for profile, agent in AGENTS.items():
        for order, body in ORDERS.items():
            limits = {"inactivity": "4s" if order == "silent" else "30s", "agent": "60s"}
            number = await runs.open_issue()
            await runs.stage.apply(
                f"{profile}-{order}",
                number,
                issue={"title": "t", "body": body, "labels": []},
                run={"trigger": "1", "agent": agent, "limits": limits},
            )
    dead = await asyncio.gather(*(stop(runs, f"{profile}-stopped") for profile in AGENTS))
    assert max(dead) < 5, dead
    for profile in AGENTS:
        ends = {order: await runs.until_finished(f"{profile}-{order}") for order in ORDERS}
        told = {order: (run["outcome"], run.get("reason")) for order, run in ends.items()}
        assert told == {
            "done": ("Succeeded", None),
            "silent": ("TimedOut", "InactivityTimeout"),
            "stopped": ("Cancelled", "StopRequested"),
        }, profile
        assert (await runs.stage.status(f"{profile}-done"))["summary"]["text"] == "Did it."
        assert [order for order, run in ends.items() if "publish" in run] == ["done"]
    assert await runs.processes() == []


async def stop(runs: RunStage, name: str) -> float:
    """Stop a run whose agent works; return how long it took until nothing of it lived."""
    await runs.until_agent_runs(name)
    assert await processes_of(runs, name)
    asked = time.monotonic()
    await runs.stage.patch(name, {"spec": {"desiredState": "Stopped"}})

    async def dead() -> bool:
        return not await processes_of(runs, name)

    await runs.stage.until(dead, f"the agent of {name} to be dead", 10)
    return time.monotonic() - asked
