"""Work of runs that end badly while nobody takes it: it is saved all the same, or told as lost."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from run_stage import QUICK, RunStage
from run_witness import PUSH, clear_faults, fault

from issuesandbox.clock import SystemClock

FAILS = ("write a.txt a", "wait 3", "exit 1")
LARGE = "head -c 999999 /dev/urandom | base64 >a.txt; sleep 3; exit 1"
OUTAGE = timedelta(seconds=20)


@pytest.mark.timeout(120)
async def test_work_outlasts_an_outage_at_the_end_of_its_run(runs: RunStage) -> None:
    await runs.start_operator()
    await fault(runs, "status", PUSH, status=502, count=None)
    await runs.run_issue(*FAILS)
    await runs.until_run("Collecting")

    async def lasted() -> bool:
        ended = (await runs.stage.status("one"))["run"].get("finishedAt")
        return ended and SystemClock().now() - datetime.fromisoformat(ended) >= OUTAGE

    await runs.stage.until(lasted, "the outage to last", 40)
    assert (await runs.stage.status("one"))["run"]["phase"] == "Collecting"
    await clear_faults(runs)
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"]) == ("Failed", "AgentFailed")
    assert run["savedWork"]["kind"] == "Branch"
    assert (await runs.refs())[f"refs/heads/{run['savedWork']['ref']}"] == run["commit"]
    assert "WorkspaceLost" not in await runs.warnings()


@pytest.mark.timeout(120)
async def test_what_no_branch_can_take_becomes_a_patch_or_is_told_as_lost(runs: RunStage) -> None:
    timings = runs.stage.timings(**{**QUICK, "work_hold": "6s", "rescue_hold": "8s"})
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    agent = {"profile": "custom", "command": ["sh", "-c", LARGE]}
    await runs.run_issue(*FAILS, name="small")
    await runs.run_issue(name="large", run={"agent": agent})
    for name in ("small", "large"):
        await runs.until_agent_runs(name)
    token = "apps/create-installation-access-token"
    await fault(runs, "status", token, status=502, count=None)
    small, large = [await runs.until_finished(name) for name in ("small", "large")]
    assert (small["outcome"], small["savedWork"]["kind"]) == ("Failed", "Patch")
    assert "+a" in (await runs.config_map(small["savedWork"]["ref"]))["patch"]
    assert "WorkspaceLost" not in await runs.warnings("small")
    assert large["outcome"] == "Failed"
    assert "savedWork" not in large

    async def told() -> bool:
        return "WorkspaceLost" in await runs.warnings("large")

    await runs.stage.until(told, "the loss to be told")
    collected = await runs.stage.condition("large", "ChangesCollected")
    assert (collected["status"], collected["reason"]) == ("False", "WorkspaceLost")
