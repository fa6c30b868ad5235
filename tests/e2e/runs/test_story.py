"""The happy story, and the stories that end otherwise, through all the real parts."""

from __future__ import annotations

from typing import Any

from run_stage import RunStage

BRANCH = "claude-fix-issue-1"
# What a good run brings about, in its order.
STATIONS = (
    "SandboxReady",
    "RepositoryCloned",
    "AgentCompleted",
    "ChangesCollected",
    "Published",
    "Finished",
)


def holding(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conditions that are true, by their types."""
    return {each["type"]: each for each in status["conditions"] if each["status"] == "True"}


async def sandbox_ready(runs: RunStage) -> dict[str, Any]:
    """Return the condition of the sandbox while the agent runs in it."""

    async def ready() -> Any:
        status = await runs.stage.status("one")
        started = status.get("run", {}).get("agentStartedAt")
        return holding(status).get("SandboxReady") if started else None

    found: dict[str, Any] = await runs.stage.until(ready, "the sandbox to be ready for the agent")
    return found


def check_stations(conditions: dict[str, dict[str, Any]]) -> None:
    """Check that each station was reached, says why, and came after the one before."""
    assert [name for name in STATIONS if name not in conditions] == []
    reached = [conditions[name]["lastTransitionTime"] for name in STATIONS]
    assert reached == sorted(reached)
    for name in STATIONS:
        assert conditions[name]["reason"], name
        assert conditions[name]["message"], name


async def test_an_issue_becomes_a_pull_request(runs: RunStage) -> None:
    # E2E-1, R34-R37, R42-R44, R48, R123
    await runs.start_operator()
    number = await runs.run_issue(
        "write src/new.py print('new')",
        "summary Added a module.\\n\\nTests: 3 passed.",
        "tick 0.3 5 working",
        "say Done.",
    )
    ready = await sandbox_ready(runs)
    run = await runs.until_finished()
    # The sandbox may have been given back since.
    check_stations({**holding(await runs.stage.status("one")), "SandboxReady": ready})
    assert (run["outcome"], run.get("reason")) == ("Succeeded", None)
    refs = await runs.refs()
    branch = f"claude-fix-issue-{number}"
    assert refs[f"refs/heads/{branch}"] == run["commit"]
    assert run["pullRequest"]["number"] > 0
    comments = await runs.comments(number)
    assert len(comments) == 1
    assert run["pullRequest"]["url"] in comments[0]["body"]
    assert run["changeTotals"] == {
        "files": 1,
        "created": 1,
        "modified": 0,
        "deleted": 0,
        "additions": 1,
        "deletions": 0,
    }
    status = await runs.stage.until_phase("one", "Succeeded")
    assert status["summary"]["tests"] == "3 passed."
    pull = await runs.github_get(f"pulls/{run['pullRequest']['number']}")
    assert f"Closes #{number}" in pull["body"]

    async def cleaned_up() -> bool:
        told = (await runs.comments(number))[0]["body"]
        return not await runs.stage.sandboxes() and "deleted" in told

    await runs.stage.until(cleaned_up, "the sandbox to be deleted and that to be told")
    (comment,) = await runs.comments(number)
    assert "**Tests:** 3 passed." in comment["body"]


async def test_nothing_changed_means_no_branch_and_no_pull_request(runs: RunStage) -> None:
    # R41
    await runs.start_operator()
    number = await runs.run_issue("summary Nothing to do.", "say It is fine as it is.")
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"]) == ("Succeeded", "NoChanges")
    assert list(await runs.refs()) == ["refs/heads/main"]
    assert "pullRequest" not in run
    assert len(await runs.comments(number)) == 1


async def test_an_agent_that_fails_fails_the_run_and_its_work_is_saved(runs: RunStage) -> None:
    # R40
    await runs.start_operator()
    await runs.run_issue("write half.txt half done", "exit 3")
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"], run["exitCode"]) == ("Failed", "AgentFailed", 3)
    assert "publish" not in run
    refs = await runs.refs()
    assert run["savedWork"]["kind"] == "Branch"
    assert f"refs/heads/{run['savedWork']['ref']}" in refs
