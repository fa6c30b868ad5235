"""Edits during a run: limits at once, triggers by their policy, a pause that holds the gate."""

from __future__ import annotations

import asyncio
from typing import Any

from run_stage import QUICK, RunStage


async def edited_limits_end_the_agent(runs: RunStage) -> None:
    await runs.run_issue("forever 0.2", name="shorter", run={"limits": {"agent": "60s"}})
    await runs.until_agent_runs("shorter")
    limits = {"limits": {"agent": "3s", "inactivity": "3s"}}
    await runs.stage.patch("shorter", {"spec": {"run": limits}})
    run = await runs.until_finished("shorter", seconds=20)
    assert (run["outcome"], run["reason"]) == ("TimedOut", "AgentTimeout")
    assert run["effective"]["limits"]["agent"] == "3s"


async def edited_limits_let_the_agent_go_on(runs: RunStage) -> None:
    limits = {"agent": "4s", "inactivity": "4s"}
    await runs.run_issue(
        "tick 0.5 14 working", "write a.txt a", name="longer", run={"limits": limits}
    )
    await runs.until_agent_runs("longer")
    await runs.stage.patch("longer", {"spec": {"run": {"limits": {"agent": "60s"}}}})
    run = await runs.until_finished("longer")
    assert run["outcome"] == "Succeeded"


async def a_limit_of_the_whole_run_holds_while_the_repository_is_cloned(runs: RunStage) -> None:
    slow = {"fault": "slow", "kind": "toolbox.git.clone", "delay": 8, "sandbox": "claude-issue-1"}
    await runs.stage.admin("POST", "faults", slow)
    await runs.run_issue("write a.txt a", name="cloning")
    await runs.until_run("Preparing", "cloning")
    limits = {"limits": {"agent": "1s", "inactivity": "1s", "run": "1s"}}
    await runs.stage.patch("cloning", {"spec": {"run": limits}})
    run = await runs.until_finished("cloning", seconds=20)
    assert (run["outcome"], run["reason"]) == ("TimedOut", "RunTimeout")


async def test_edits_of_limits_take_effect_at_once(runs: RunStage) -> None:
    await runs.start_operator()
    # The first issue, and so the first sandbox by name, is the one whose clone is slow.
    cloning = asyncio.create_task(
        a_limit_of_the_whole_run_holds_while_the_repository_is_cloned(runs)
    )
    await runs.until_run("Preparing", "cloning")
    await asyncio.gather(
        cloning, edited_limits_end_the_agent(runs), edited_limits_let_the_agent_go_on(runs)
    )


async def second_run(runs: RunStage, policy: str, ticks: int) -> dict[str, Any]:
    """Ask for a second run during the first; return the status when all is over."""
    name = policy.lower()
    await runs.run_issue(
        "append log.txt x", f"tick 0.4 {ticks} working", name=name, run={"onNewTrigger": policy}
    )
    await runs.until_agent_runs(name)
    for trigger in ("2", "3", "4"):
        await runs.trigger(trigger, name)
    await runs.until_finished(name, trigger="4", seconds=60)
    status: dict[str, Any] = await runs.stage.status(name)
    return status


async def test_a_new_trigger_waits_is_ignored_or_replaces_and_a_burst_counts_once(
    runs: RunStage,
) -> None:
    timings = runs.stage.timings(**{**QUICK, "trigger_debounce": "3s"})
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    queued, ignored, replaced = await asyncio.gather(
        second_run(runs, "Queue", ticks=5),
        second_run(runs, "Ignore", ticks=5),
        # Longer than the debounce: a run that is over by then has nothing to be replaced.
        second_run(runs, "Replace", ticks=12),
    )
    assert queued["counters"]["runs"] == 2
    assert queued["history"][0]["outcome"] == "Succeeded"
    assert ignored["counters"]["runs"] == 1
    assert ignored["run"]["outcome"] == "Succeeded"
    assert replaced["counters"]["runs"] == 2
    past = replaced["history"][0]
    assert (past["outcome"], past["reason"]) == ("Cancelled", "Replaced")


async def test_a_pause_holds_the_gate_and_no_longer_than_it_lasts(runs: RunStage) -> None:
    await runs.start_operator()
    await runs.run_issue("write a.txt a", "tick 0.3 4 working")
    await runs.until_agent_runs()
    paused = {"metadata": {"annotations": {"issuesandbox.dev/paused": "true"}}}
    await runs.stage.patch("one", paused)

    async def dead() -> bool:
        return not await runs.processes()

    await runs.stage.until(dead, "the agent to end")
    await asyncio.sleep(2)
    run = (await runs.stage.status("one"))["run"]
    assert "publish" not in run
    assert list(await runs.refs()) == ["refs/heads/main"]
    await runs.stage.patch("one", {"metadata": {"annotations": {"issuesandbox.dev/paused": None}}})
    end = await runs.until_finished()
    assert (end["id"], end["outcome"]) == (run["id"], "Succeeded")
