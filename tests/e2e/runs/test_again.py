"""More than one run: follow-ups, replaced runs, lost sandboxes."""

from __future__ import annotations

import json

from run_stage import RunStage

WAYS = ("reused", "restarted", "created", "recreated")


def lookups(runs: RunStage) -> list[tuple[str, str]]:
    """Return how each run came by its sandbox, and which one that is, by the operator's log."""
    log = runs.stage.operators[0].log.read_text()
    lines = [json.loads(line) for line in log.splitlines() if '"run":' in line]
    told = [each for each in lines if each["message"] in ("lookup", *WAYS)]
    pairs = list(zip(told[::2], told[1::2], strict=True))
    for looked, found in pairs:
        assert (looked["message"], looked["run"]) == ("lookup", found["run"])
    return [(found["message"], found["sandbox"]) for _, found in pairs]


async def test_a_follow_up_runs_in_the_same_sandbox_and_session(runs: RunStage) -> None:
    # E2E-4, R3, R66, R112, R126
    await runs.start_operator()
    await runs.run_issue("append log.txt more", run={"keepAlive": True})
    first = await runs.until_finished()
    sandbox = (await runs.stage.status("one"))["sandbox"]["id"]
    await runs.trigger("2", prompt="Now do the rest.")
    second = await runs.until_finished(trigger="2")
    assert second["id"] != first["id"]
    assert second["outcome"] == "Succeeded"
    assert second["sessionId"] == first["sessionId"]
    status = await runs.stage.status("one")
    assert status["sandbox"]["id"] == sandbox
    assert lookups(runs) == [("created", sandbox), ("reused", sandbox)]
    assert [each["id"] for each in status["history"]] == [first["id"]]
    assert second["pullRequest"]["number"] == first["pullRequest"]["number"]


async def test_a_new_trigger_replaces_the_run(runs: RunStage) -> None:
    await runs.start_operator()
    await runs.run_issue("forever 1")
    first = await runs.until_agent_runs()
    await runs.trigger("2")

    async def replaced() -> bool:
        history = (await runs.stage.status("one")).get("history", [])
        return bool(history)

    await runs.stage.until(replaced, "the first run to be replaced")
    past = (await runs.stage.status("one"))["history"][0]
    assert (past["id"], past["outcome"], past["reason"]) == (first["id"], "Cancelled", "Replaced")
    second = await runs.until_agent_runs(trigger="2")
    assert second["id"] != first["id"]
    await runs.stage.patch("one", {"spec": {"desiredState": "Stopped"}})
    await runs.until_finished(trigger="2")


async def test_sandboxes_that_were_wiped_are_made_anew_for_the_next_run(runs: RunStage) -> None:
    # E2E-7, R32, R129
    await runs.start_operator()
    number = await runs.run_issue("write a.txt a", run={"keepAlive": True})
    await runs.until_finished()
    before = (await runs.stage.status("one"))["sandbox"]["id"]
    await runs.stage.admin("POST", "wipe", {})
    await runs.trigger("2")
    run = await runs.until_finished(trigger="2")
    assert run["outcome"] == "Succeeded"
    status = await runs.stage.status("one")
    assert status["history"][0]["sandboxId"] == before
    found = lookups(runs)
    # In between it may have been taken for alive, as the last fleet view showed it.
    assert (found[0], found[-1]) == (("created", before), ("recreated", status["sandbox"]["id"]))
    assert found[1:-1] in ([], [("reused", before)])
    for comment in await runs.comments(number):
        assert "not running" not in comment["body"]


async def test_a_sandbox_lost_during_a_run_is_replaced_and_the_run_begins_again(
    runs: RunStage,
) -> None:
    await runs.start_operator()
    await runs.run_issue("tick 1 6 working", "write a.txt a")
    run = await runs.until_agent_runs()
    sandbox = (await runs.stage.status("one"))["sandbox"]["id"]
    await runs.stage.admin("POST", f"sandboxes/{sandbox}/destroy", {})
    end = await runs.until_finished(seconds=60)
    assert end["id"] == run["id"]
    assert (end["outcome"], end["recreations"]) == ("Succeeded", 1)
