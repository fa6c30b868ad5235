"""Stories of sandboxes and runs together: reuse, a lost status write, and many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from run_stage import RunStage
from run_witness import opened, pushes


async def test_an_issue_keeps_its_sandbox_over_triggers_and_stops_and_shares_it_with_none(
    runs: RunStage,
) -> None:
    # E2E-8, R2-R4, R14, R130
    await runs.start_operator()
    keep = {"trigger": "1", "keepAlive": True}
    # Pull requests take numbers, too.
    numbers = [await runs.open_issue("append log.txt more") for _ in range(3)]
    assert numbers == [1, 2, 3]
    await runs.stage.apply("one", 1, run=keep)
    await runs.until_finished()
    first = (await runs.stage.status("one"))["sandbox"]
    assert first["name"] == "claude-issue-1"
    await runs.trigger("2")
    await runs.until_finished(trigger="2")
    assert (await runs.stage.status("one"))["sandbox"]["id"] == first["id"]
    await runs.stage.admin("POST", f"sandboxes/{first['id']}/stop", {})
    await runs.trigger("3")
    run = await runs.until_finished(trigger="3")
    status = await runs.stage.status("one")
    assert (run["outcome"], status["sandbox"]["id"]) == ("Succeeded", first["id"])
    assert status["counters"]["starts"] >= 1
    for number, name in enumerate(("two", "three"), 2):
        await runs.stage.apply(name, number, run=keep)
    for name in ("two", "three"):
        assert (await runs.until_finished(name))["outcome"] == "Succeeded"
    names = sorted(each["name"] for each in await runs.stage.sandboxes())
    assert names == ["claude-issue-1", "claude-issue-2", "claude-issue-3"]


async def test_a_status_that_cannot_be_written_after_the_create_leaves_one_sandbox(
    runs: RunStage,
) -> None:
    # E2E-9, R77, R79, R131
    await runs.start_operator()
    slow = {"fault": "slow", "kind": "sandbox.create", "delay": 3.0, "count": 1}
    await runs.stage.admin("POST", "faults", slow)
    await runs.run_issue("write a.txt a", run={"keepAlive": True})

    async def announced() -> bool:
        annotations = (await runs.stage.get("one"))["metadata"].get("annotations", {})
        return "issuesandbox.dev/first-create" in annotations

    await runs.stage.until(announced, "the announcement")
    home = runs.stage.namespace
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    await runs.stage.api("DELETE", f"{bindings}/issuesandbox-operator-{home}")

    async def created() -> bool:
        return bool(await runs.stage.sandboxes())

    await runs.stage.until(created, "the sandbox")
    await asyncio.sleep(1)
    assert "sandbox" not in await runs.stage.status("one"), "the write was to fail"
    runs.stage.grant_rights(home)
    run = await runs.until_finished(seconds=60)
    assert run["outcome"] == "Succeeded"
    (sandbox,) = await runs.stage.sandboxes()
    assert (await runs.stage.status("one"))["sandbox"]["id"] == sandbox["id"]


@pytest.mark.timeout(240)
async def test_many_issues_at_once_and_a_burst_for_each_do_everything_once(
    runs: RunStage,
) -> None:
    # E2E-11, R1, R11, R133
    await runs.start_operator()
    names = [f"issue-{index}" for index in range(1, 13)]

    async def one(name: str) -> dict[str, Any]:
        number = await runs.open_issue("append log.txt once", "say Done.")
        await runs.stage.apply(name, number, run={"trigger": "1", "keepAlive": True})
        # A burst before the run can have begun counts as one.
        for index in range(5):
            await runs.trigger(f"burst-{index}", name)
        return await runs.until_finished(name, trigger="burst-4", seconds=120)

    ends = await asyncio.gather(*(one(name) for name in names))
    assert [(each["outcome"], each.get("reason")) for each in ends] == [("Succeeded", None)] * 12
    assert len(await runs.stage.sandboxes()) == len(names)
    assert len(await opened(runs)) == len(names)
    for end in ends:
        assert 1 <= len(await pushes(runs, end["branch"])) <= 2
