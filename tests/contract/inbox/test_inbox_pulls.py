"""Pull requests of a resource stay its own while the next run goes on."""

from __future__ import annotations

from inbox_stage import Inbox
from tests.fakes.github_stage import REPOSITORY


async def _pull(inbox: Inbox) -> int:
    """Open a pull request that no resource knows yet."""
    files = {"branch": "fix", "files": {"a": "b"}}
    await inbox.stage.admin("POST", f"/repos/{REPOSITORY}/push", files)
    order = {"title": "Fix", "head": "fix", "base": "main", "body": "It works."}
    made = await inbox.stage.admin("POST", f"/repos/{REPOSITORY}/pulls", order)
    return int(made["number"])


async def test_commands_and_the_end_of_a_pull_request_count_during_the_next_run(
    inbox: Inbox,
) -> None:
    number = await inbox.issue()
    pull = await _pull(inbox)
    inbox.begin_run(number, phase="Finished", pullRequest={"number": pull, "url": "x"})
    follow_up = await inbox.say(pull, "/continue with the tests", "member")
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["run"]["trigger"] == f"c{follow_up}"
    assert spec["run"]["prompt"] == "with the tests"

    # The next run has no pull request of its own yet, but it works on the same one.
    inbox.begin_run(number, past=[{"id": "r", "pullRequestNumber": pull}])
    await inbox.say(pull, "/stop", "member")
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["desiredState"] == "Stopped"
    await inbox.say(pull, "/run", "member")
    inbox.later()
    await inbox.stage.admin("POST", f"/repos/{REPOSITORY}/pulls/{pull}/close", {"as": "owner"})
    await inbox.settled()
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["desiredState"] == "Stopped"


async def test_a_pull_request_or_issue_that_is_closed_or_locked_starts_nothing(
    inbox: Inbox,
) -> None:
    number = await inbox.issue()
    pull = await _pull(inbox)
    inbox.begin_run(number, phase="Finished", pullRequest={"number": pull, "url": "x"})
    before = inbox.cluster.triggers[number][:]

    async def refused(why: str) -> None:
        told = len(await inbox.answers(pull))
        await inbox.say(pull, "/run", "member")
        assert inbox.cluster.triggers[number] == before
        assert why in (await inbox.answers(pull))[told]

    await inbox.act(pull, "lock", "owner")
    await refused("the pull request is locked")
    await inbox.act(pull, "unlock", "owner")
    await inbox.act(number, "close", "owner")
    await refused("the issue behind it is closed")
    await inbox.act(number, "reopen", "stranger")
    inbox.later()
    await inbox.stage.admin("POST", f"/repos/{REPOSITORY}/pulls/{pull}/close", {"as": "owner"})
    await inbox.settled()
    await refused("the pull request is closed")


async def test_a_merged_pull_request_that_nobody_heard_of_is_found(inbox: Inbox) -> None:
    number = await inbox.issue()
    pull = await _pull(inbox)
    inbox.begin_run(number, past=[{"id": "r", "pullRequestNumber": pull}])
    await inbox.deafen()
    inbox.later()
    await inbox.stage.admin("POST", f"/repos/{REPOSITORY}/pulls/{pull}/merge", {"as": "owner"})
    assert await inbox.catch_up.look()
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["desiredState"] == "Stopped"


async def test_other_peoples_pull_requests_are_none_of_our_business(inbox: Inbox) -> None:
    number = await inbox.issue()
    pull = await _pull(inbox)
    before = inbox.cluster.turn
    await inbox.say(pull, "/run", "member")
    await inbox.stage.admin("POST", f"/repos/{REPOSITORY}/pulls/{pull}/close", {"as": "owner"})
    await inbox.settled()
    assert inbox.cluster.turn == before
    assert await inbox.answers(pull) == []
    assert inbox.spec(number) is not None
