"""What is kept between and after runs: saved work, sandboxes kept alive, sessions."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from run_stage import QUICK, RunStage


async def failed_run(runs: RunStage, save: str) -> dict[str, Any]:
    recovery = {"saveWork": save}
    name = save.lower()
    await runs.run_issue("write half.txt half", "exit 3", name=name, recovery=recovery)
    return await runs.until_finished(name)


async def test_work_is_saved_as_a_patch_or_not_at_all_where_that_is_asked(runs: RunStage) -> None:
    await runs.start_operator()
    patch, off = await asyncio.gather(failed_run(runs, "Patch"), failed_run(runs, "Off"))
    assert patch["savedWork"]["kind"] == "Patch"
    place = f"/api/v1/namespaces/{runs.stage.namespace}/configmaps/{patch['savedWork']['ref']}"
    kept = await runs.stage.api("GET", place)
    assert "half.txt" in kept["data"]["patch"]
    assert "savedWork" not in off
    assert list(await runs.refs()) == ["refs/heads/main"]


async def test_an_hour_later_the_next_run_goes_on_where_the_last_one_ended(runs: RunStage) -> None:
    # E2E-5, R66, R127
    await runs.start_operator()
    names = ("stopped", "gone")
    for name in names:
        await runs.run_issue("append log.txt more", name=name, run={"keepAlive": True})
    first = {name: await runs.until_finished(name) for name in names}
    before = {name: (await runs.stage.status(name))["sandbox"]["id"] for name in names}
    await runs.stage.admin("POST", "advance", {"seconds": 3700})
    states = {each["id"]: each["state"] for each in await runs.stage.sandboxes()}
    assert set(states.values()) == {"stopped"}, "Daytona stops what nobody uses"
    await runs.stage.admin("POST", f"sandboxes/{before['gone']}/destroy", {})
    for name in names:
        await runs.trigger("2", name, prompt="Now do the rest.")
    second = {name: await runs.until_finished(name, trigger="2") for name in names}
    after = {name: (await runs.stage.status(name))["sandbox"]["id"] for name in names}
    assert [each["outcome"] for each in second.values()] == ["Succeeded", "Succeeded"]
    assert after["stopped"] == before["stopped"]
    assert second["stopped"]["sessionId"] == first["stopped"]["sessionId"]
    assert after["gone"] != before["gone"]
    assert second["gone"]["sessionId"] != first["gone"]["sessionId"]


async def test_a_sandbox_that_is_kept_alive_is_stopped_once_nobody_uses_it(
    runs: RunStage,
) -> None:
    # R83
    idle = {"keep_alive_limit": "3s", "idle_limit": "2s"}
    await runs.start_operator(ISSUESANDBOX_TIMINGS=runs.stage.timings(**QUICK, **idle))
    await runs.run_issue("append log.txt more", run={"keepAlive": True})
    finished = datetime.fromisoformat((await runs.until_finished())["finishedAt"])
    assert await runs.stage.phase("one") == "Succeeded", "kept or not, the run is over"
    (sandbox,) = await runs.stage.sandboxes()

    async def stopped() -> bool:
        return (await runs.stage.status("one"))["sandbox"]["state"] == "stopped"

    await runs.stage.until(stopped, "the idle sandbox to be stopped")
    since = datetime.fromisoformat((await runs.stage.status("one"))["sandbox"]["stateSince"])
    assert since - finished >= timedelta(seconds=2), "it is kept for a while"
    await runs.trigger("2", prompt="Now do the rest.")
    again = await runs.until_finished(trigger="2")
    assert again["outcome"] == "Succeeded"
    assert (await runs.stage.status("one"))["sandbox"]["id"] == sandbox["id"]


async def test_a_finished_resource_goes_only_after_the_last_word_on_its_issue(
    runs: RunStage,
) -> None:
    # R138
    await runs.start_operator()
    number = await runs.run_issue("write a.txt a", cleanup={"ttlAfterFinished": "1s"})
    await runs.stage.until_gone("one", 60)
    (comment,) = await runs.comments(number)
    assert "deleted" in comment["body"], "the cleanup was told before the resource went"
