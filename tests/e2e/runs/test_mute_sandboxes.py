"""Sandboxes that run, as Daytona says, but do not answer when a run wants to use them."""

from __future__ import annotations

import asyncio
from typing import Any

from run_stage import QUICK, RunStage


async def muted(runs: RunStage, name: str, **spec: Any) -> tuple[str, str]:
    """Ask for a run whose sandbox will not answer; return the sandbox and the fault."""
    number = await runs.open_issue("write a.txt a")
    await runs.stage.apply(name, number, run={"trigger": "1"}, **spec)

    async def ordered() -> Any:
        rows = await runs.stage.sandboxes()
        return [each["id"] for each in rows if each["name"] == f"claude-issue-{number}"]

    (sandbox,) = await runs.stage.until(ordered, f"the sandbox of {name}")
    down = {"fault": "toolbox_down", "kind": "toolbox.*", "sandbox": sandbox, "count": None}
    fault = await runs.stage.admin("POST", "faults", down)
    return sandbox, fault["id"]


async def healed_by_a_restart(runs: RunStage) -> dict[str, Any]:
    sandbox, fault = await muted(runs, "restarted")

    async def stopped() -> bool:
        return (await runs.stage.daytona_get(sandbox))["state"] == "stopped"

    await runs.stage.until(stopped, "the sandbox to be stopped")
    await runs.stage.admin("DELETE", f"faults/{fault}")
    return await runs.until_finished("restarted")


async def healed_by_nothing(runs: RunStage) -> dict[str, Any]:
    await muted(runs, "replaced")
    return await runs.until_finished("replaced", seconds=60)


async def test_a_sandbox_that_does_not_answer_is_restarted_then_replaced(runs: RunStage) -> None:
    # R61-R63, R67
    await runs.stage.admin("PATCH", "settings", {"timings": {"creating": 1.0}})
    timings = runs.stage.timings(**{**QUICK, "probe_timeout": "1500ms"})
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    restarted, replaced = await asyncio.gather(healed_by_a_restart(runs), healed_by_nothing(runs))
    assert (restarted["outcome"], restarted["restarts"]) == ("Succeeded", 1)
    assert restarted["recreations"] == 0
    assert (replaced["outcome"], replaced["recreations"]) == ("Succeeded", 1)
    for name in ("restarted", "replaced"):
        comments = await runs.comments(1 if name == "restarted" else 2)
        assert all("not running" not in each["body"] for each in comments)
