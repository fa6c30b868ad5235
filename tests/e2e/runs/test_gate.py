"""Pushed once and never after a stop, whatever GitHub, people and other replicas do meanwhile."""

from __future__ import annotations

from typing import Any

from run_stage import REPOSITORY, RunStage
from run_witness import (
    PUSH,
    clear_faults,
    fault,
    journal,
    kill_operator,
    opened,
    pushes,
    until_gated,
)


async def test_lost_and_refused_answers_of_github_cost_nothing(runs: RunStage) -> None:
    await runs.start_operator()
    faults: list[list[dict[str, Any]]] = [
        [
            {"kind": "reset", "operation": PUSH, "after_effect": True},
            {"kind": "status", "status": 500, "operation": "pulls/create", "count": 2},
            {"kind": "status", "status": 502, "operation": "issues/create-comment"},
        ],
        [
            {"kind": "status", "status": 500, "operation": PUSH, "count": 2},
            {"kind": "reset", "operation": "pulls/create", "after_effect": True},
            {"kind": "secondary-rate-limit", "operation": "issues/create-comment", "seconds": 1},
            {"kind": "reset", "operation": "issues/create-comment", "after_effect": True},
        ],
    ]
    for index, group in enumerate(faults, 1):
        for each in group:
            await runs.hub("POST", "faults", each)
        number = await runs.run_issue(f"write a{index}.txt a", name=f"run-{index}")
        run = await runs.until_finished(f"run-{index}")
        assert (run["outcome"], run.get("reason")) == ("Succeeded", None)
        assert len(await pushes(runs, run["branch"])) == 1
        assert len(await opened(runs)) == index
        assert len(await runs.comments(number)) == 1
        await clear_faults(runs)


async def test_a_pull_request_is_opened_however_long_github_puts_us_off(runs: RunStage) -> None:
    await runs.start_operator()
    await fault(runs, "secondary-rate-limit", "pulls/create", seconds=11, count=2)
    await runs.run_issue("write a.txt a")
    run = await runs.until_finished(seconds=60)
    assert (run["outcome"], run.get("reason")) == ("Succeeded", None)
    assert await opened(runs) == [run["pullRequest"]["number"]]
    assert len(await pushes(runs, run["branch"])) == 1


async def test_the_last_word_is_said_however_long_github_puts_us_off(runs: RunStage) -> None:
    await runs.start_operator()
    number = await runs.run_issue("write a.txt a", "wait 3")
    await runs.until_agent_runs()
    await runs.stage.until(lambda: runs.comments(number), "the first word")
    edit = "issues/update-comment"
    await fault(runs, "secondary-rate-limit", edit, seconds=1)
    await fault(runs, "status", edit, status=500, count=None)
    run = await runs.until_finished()
    assert (run["outcome"], run.get("reason")) == ("Succeeded", None)
    await runs.stage.until(lambda: _cleaned_up(runs), "the cleanup")

    async def said() -> bool:
        (comment,) = await runs.comments(number)
        return run["pullRequest"]["url"] in comment["body"]

    assert not await said()
    edits = [each for each in await journal(runs) if each.get("operation") == edit]
    assert {403, 500} <= {each["status"] for each in edits}
    # Nothing else happens from now on that could be a reason to write.
    await clear_faults(runs)
    await runs.stage.until(said, "the last word", 60)
    assert (await runs.stage.status("one"))["run"]["outcome"] == "Succeeded"


async def _cleaned_up(runs: RunStage) -> bool:
    return not await runs.stage.sandboxes()


async def test_a_pull_request_that_fails_for_good_leaves_the_branch_and_says_so(
    runs: RunStage,
) -> None:
    await runs.start_operator()
    await fault(runs, "status", "pulls/create", status=403, count=None)
    number = await runs.run_issue("write a.txt a")
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"]) == ("Failed", "PullRequestFailed")
    assert run["branch"] in run["message"]
    assert (await runs.refs())[f"refs/heads/{run['branch']}"] == run["commit"]
    (comment,) = await runs.comments(number)
    assert run["branch"] in comment["body"]
    assert await runs.stage.sandboxes(), "the sandbox is kept"


async def test_another_replica_finishes_the_push_that_was_decided(runs: RunStage) -> None:
    # R56
    await runs.start_operator()
    await fault(runs, "slow", PUSH, seconds=20)
    number = await runs.run_issue("write a.txt a")
    gate = await until_gated(runs, "one")
    await kill_operator(runs)
    await clear_faults(runs)
    assert await pushes(runs, gate["branch"]) == []
    await runs.start_operator()
    run = await runs.until_finished()
    assert run["outcome"] == "Succeeded"
    assert run["publish"]["at"] == gate["publish"]["at"], "decided once"
    (push,) = await pushes(runs, run["branch"])
    assert (push["old"], push["new"]) == (gate["publish"]["old"], gate["publish"]["commit"])
    assert len(await opened(runs)) == 1
    assert len(await runs.comments(number)) == 1


async def test_a_stop_after_the_gate_is_told_that_it_came_too_late(runs: RunStage) -> None:
    await runs.start_operator()
    await fault(runs, "slow", PUSH, seconds=2)
    number = await runs.run_issue("write a.txt a")
    await until_gated(runs, "one")
    await runs.stage.patch("one", {"spec": {"desiredState": "Stopped"}})
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"]) == ("Cancelled", "TooLateToStop")
    assert len(await pushes(runs, run["branch"])) == 1
    assert await opened(runs) == []
    (comment,) = await runs.comments(number)
    assert run["branch"] in comment["body"]
    (sandbox,) = await runs.stage.sandboxes()
    assert sandbox["state"] == "stopped"


async def test_what_a_human_pushed_during_the_run_is_never_lost(runs: RunStage) -> None:
    await runs.start_operator()
    number = await runs.run_issue("append log.txt one", run={"keepAlive": True})
    first = await runs.until_finished()
    # The second run goes on with the branch of the open pull request; so does a person.
    branch = first["branch"]
    body = {"prompt": "```scenario\nwrite b.txt b\ntick 0.3 5 working\n```"}
    await runs.trigger("2", **body)
    await runs.until_agent_runs(trigger="2")
    edit = {"branch": branch, "files": {"human.txt": "mine\n"}, "as": "octocat"}
    theirs = await runs.hub("POST", f"repos/{REPOSITORY}/push", edit)
    second = await runs.until_finished(trigger="2")
    assert (second["outcome"], second["reason"]) == ("Failed", "BranchMoved")
    refs = await runs.refs()
    assert refs[f"refs/heads/{branch}"] == theirs["new"]
    saved = second["savedWork"]
    assert saved["ref"] == f"wip/issue-{number}-{second['id']}"
    assert refs[f"refs/heads/{saved['ref']}"] == second["commit"]
    assert len(await runs.comments(number)) == 1


async def test_a_branch_that_a_human_makes_during_the_first_run_is_left_alone(
    runs: RunStage,
) -> None:
    await runs.start_operator()
    await runs.run_issue("write a.txt a", "tick 0.3 5 working")
    begun = await runs.until_agent_runs()
    edit = {"branch": begun["branch"], "files": {"human.txt": "mine\n"}, "as": "octocat"}
    theirs = await runs.hub("POST", f"repos/{REPOSITORY}/push", edit)
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"]) == ("Failed", "BranchMoved")
    refs = await runs.refs()
    assert refs[f"refs/heads/{run['branch']}"] == theirs["new"]
    assert refs[f"refs/heads/{run['savedWork']['ref']}"] == run["commit"]
