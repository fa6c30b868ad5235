"""What a replica counted of real runs: one that went well, one that was stopped, one too long."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families
from run_stage import QUICK, RunStage


async def numbers(runs: RunStage) -> dict[str, float]:
    """Return every figure of the replica, by name and labels."""
    async with runs.http.get(f"{runs.stage.probe_urls[-1]}/metrics") as answer:
        families = text_string_to_metric_families(await answer.text())
    return {
        "/".join([sample.name.removeprefix("issuesandbox_"), *sorted(sample.labels.values())]): (
            sample.value
        )
        for family in families
        for sample in family.samples
    }


async def test_runs_stops_and_time_outs_are_counted_and_audited(runs: RunStage) -> None:
    # R56, R109
    timings = runs.stage.timings(**{**QUICK, "audit_delay": "1s"})
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    await runs.run_issue("write a.txt a", name="good")
    await runs.run_issue("forever 1", name="stopped")
    await runs.run_issue("forever 1", name="long", run={"limits": {"agent": "5s"}})
    await runs.until_agent_runs("stopped")
    await runs.stage.patch("stopped", {"spec": {"desiredState": "Stopped"}})
    await asyncio.gather(*(runs.until_finished(name) for name in ("good", "stopped", "long")))

    async def audited() -> bool:
        found = await numbers(runs)
        return found["push_audits_total/clean"] == 2 and bool(
            found["sandbox_deletions_total/deleted"]
        )

    await runs.stage.until(audited, "the auditor and the cleanup", seconds=40)
    found = await numbers(runs)
    once = (
        "runs_total/PullRequest/Succeeded",
        "runs_total/Cancelled/StopRequested",
        "runs_total/AgentTimeout/TimedOut",
        "publishes_total/pull_request",
        "limits_hit_total/agent",
        "stops_total/confirmed",
        "stop_lookup_seconds_count",
        "stop_response_seconds_count",
        "stop_confirm_seconds_count",
        "timeout_cleanups_total/confirmed",
    )
    assert {name: found[name] for name in once} == dict.fromkeys(once, 1.0)
    assert found["health_probes_total/healthy"] >= 3
    assert found["creates_total/ok"] == 3
    never = (
        "push_after_stop_total",
        "push_after_timeout_total",
        "stops_total/failed",
        "stops_total/not_asked",
        "late_results_total/taken",
    )
    assert {name: found[name] for name in never} == dict.fromkeys(never, 0.0)
