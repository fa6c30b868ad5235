"""What a run asks of GitHub, judged by the simulator."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes.github_stage import REPOSITORY, TOKEN, Stage

from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.ports.errors import Denied, Invalid, NotFound, Unavailable
from issuesandbox.ports.github import PullOrder

ORDER = PullOrder("claude-fix-issue-1", "main", "Fix #1", "Closes #1")


@pytest.fixture
async def branch(stage: Stage) -> str:
    """A branch with one commit."""
    made = await stage.post(
        f"/repos/{REPOSITORY}/push", branch=ORDER.head, files={"a": "1"}, message="x"
    )
    return str(made["new"])


async def test_repository_issue_and_branch_are_read(github: GitHubConnection, stage: Stage) -> None:
    number = await stage.issue("Bröken", body="it\nbreaks", labels=["bug"])
    repository = await github.client.repository(REPOSITORY)
    assert (repository.full_name, repository.default_branch) == (REPOSITORY, "main")
    assert repository.private
    assert repository.clone_url == stage.git_url
    issue = await github.client.issue(REPOSITORY, number)
    assert (issue.number, issue.title, issue.body) == (number, "Bröken", "it\nbreaks")
    assert (issue.author, issue.labels, issue.state) == ("octocat", ("bug",), "open")
    assert not issue.is_pull_request
    assert issue.id > 2_000_000_000
    main = (await stage.refs())["refs/heads/main"]
    assert await github.client.branch_tip(REPOSITORY, "main") == main
    assert await github.client.branch_tip(REPOSITORY, "no/such ☃ branch?#%2e") is None
    odd = "feat/ü#1%41"
    made = await stage.post(
        f"/repos/{REPOSITORY}/push", branch=odd, files={"a": "1"}, message="odd"
    )
    assert await github.client.branch_tip(REPOSITORY, odd) == made["new"]


async def test_what_is_not_there_is_not_found(github: GitHubConnection, stage: Stage) -> None:
    await stage.post("/repos", repository="acme/other", files={"a": "1"})
    gone, moved = await stage.issue(), await stage.issue()
    await stage.post(f"/repos/{REPOSITORY}/issues/{gone}/delete")
    await stage.post(f"/repos/{REPOSITORY}/issues/{moved}/transfer", to="acme/other")
    for number in (gone, moved, 999):
        with pytest.raises(NotFound):
            await github.client.issue(REPOSITORY, number)
    with pytest.raises(NotFound) as missing:
        await github.client.repository("acme/none")
    assert "not installed on acme/none" in str(missing.value)
    with pytest.raises(NotFound):
        await github.client.branch_tip("acme/none", "main")


async def test_an_empty_repository_has_no_branch(github: GitHubConnection, stage: Stage) -> None:
    await stage.post("/repos", repository="acme/empty")
    assert await github.client.branch_tip("acme/empty", "main") is None


@pytest.mark.usefixtures("branch")
async def test_a_pull_request_is_opened_once(github: GitHubConnection) -> None:
    assert await github.client.open_pull(REPOSITORY, ORDER.head) is None
    made = await asyncio.gather(*(github.client.create_pull(REPOSITORY, ORDER) for _ in range(3)))
    assert len({each.number for each in made}) == 1  # R43
    found = await github.client.open_pull(REPOSITORY, ORDER.head)
    assert found is not None
    assert (found.number, found.state, found.base) == (made[0].number, "open", "main")
    changed = await github.client.update_pull(
        REPOSITORY, found.number, title="Fix #1 better", body="Closes #1\n\nmore"
    )
    assert changed.body == "Closes #1\n\nmore"


async def test_a_pull_request_whose_answer_was_lost_is_found_again(
    github: GitHubConnection, stage: Stage, branch: str
) -> None:
    await stage.fault("status", "pulls/create", status=502, after_effect=True)
    with pytest.raises(Unavailable):
        await github.client.create_pull(REPOSITORY, ORDER)
    again = await github.client.create_pull(REPOSITORY, ORDER)
    assert again.head_commit == branch
    opened = [
        effect
        for each in await stage.requests("pulls/create")
        for effect in each["effect"]
        if effect["what"] == "pull_request.opened"
    ]
    assert len(opened) == 1


async def test_a_pull_request_without_commits_is_invalid(
    github: GitHubConnection, stage: Stage
) -> None:
    order = PullOrder("main", "main", "x", "")
    with pytest.raises(Invalid):
        await github.client.create_pull(REPOSITORY, order)


async def test_closed_and_merged_pull_requests_are_not_open(
    github: GitHubConnection, stage: Stage, branch: str
) -> None:
    made = await github.client.create_pull(REPOSITORY, ORDER)
    await stage.post(f"/repos/{REPOSITORY}/pulls/{made.number}/merge")
    assert await github.client.open_pull(REPOSITORY, ORDER.head) is None


async def test_comments_are_found_by_marker_and_author(
    github: GitHubConnection, stage: Stage
) -> None:
    number = await stage.issue()
    marker = "<!-- marker -->"
    for index in range(120):
        await stage.post(f"/repos/{REPOSITORY}/issues/{number}/comment", body=f"{marker} {index}")
    first = await github.client.create_comment(REPOSITORY, number, f"one {marker}")
    await github.client.create_comment(REPOSITORY, number, "two")
    third = await github.client.create_comment(REPOSITORY, number, f"three {marker}")
    found = await github.client.comments(REPOSITORY, number, marker)  # R45
    assert [each.id for each in found] == [first.id, third.id]
    assert found[0].author == "issuesandbox[bot]"
    changed = await github.client.update_comment(REPOSITORY, first.id, "new text")
    assert changed.body == "new text"
    await github.client.delete_comment(REPOSITORY, third.id)
    await github.client.delete_comment(REPOSITORY, third.id)
    with pytest.raises(NotFound):
        await github.client.update_comment(REPOSITORY, third.id, "x")


async def test_a_locked_issue_has_its_own_word(stage: Stage) -> None:
    number = await stage.issue()
    await stage.post(f"/repos/{REPOSITORY}/issues/{number}/lock")
    await stage.admin("PUT", "/users/mona", {"permission": "read"})
    token = (await stage.post("/tokens", user="mona"))["token"]
    reader = stage.connect(token=token)
    try:
        with pytest.raises(Denied) as caught:
            await reader.client.create_comment(REPOSITORY, number, "x")
        assert caught.value.code == "IssueLocked"
    finally:
        await reader.close()


@pytest.mark.parametrize("path", ["", "/api/v3", "/api/v3/"])
async def test_enterprise_addresses_and_plain_tokens_work(stage: Stage, path: str) -> None:
    number = await stage.issue()
    connection = stage.connect(token=TOKEN, path=path)
    try:
        assert (await connection.client.issue(REPOSITORY, number)).number == number
        assert await connection.forge.own_login() == "octocat"
        assert (await connection.client.write_token(REPOSITORY)).value == TOKEN
        marker = "<!-- m -->"
        made = await connection.client.create_comment(REPOSITORY, number, marker)
        found = await connection.client.comments(REPOSITORY, number, marker)
        assert [each.id for each in found] == [made.id]
    finally:
        await connection.close()
