"""What the webhook adapter asks of GitHub beside a run."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.fakes.github_stage import REPOSITORY, TOKEN, Stage

from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.ports.errors import Invalid, NotFound
from issuesandbox.ports.github import Permission, Reaction


@pytest.mark.parametrize("level", list(Permission))
async def test_permissions_are_told_apart(
    github: GitHubConnection, stage: Stage, level: Permission
) -> None:
    await stage.admin("PUT", "/users/mona", {"permission": level.value})
    assert await github.forge.permission(REPOSITORY, "mona") is level
    assert level.at_least(Permission.NONE)
    assert level.at_least(Permission.WRITE) == (level.value in ("write", "maintain", "admin"))


async def test_a_stranger_may_do_nothing(github: GitHubConnection) -> None:
    assert await github.forge.permission(REPOSITORY, "no-such-person") is Permission.NONE
    with pytest.raises(NotFound):
        await github.forge.permission("acme/none", "mona")


async def test_reactions_are_given_once(github: GitHubConnection, stage: Stage) -> None:
    number = await stage.issue()
    comment = await github.client.create_comment(REPOSITORY, number, "/run")
    for _ in range(2):
        await github.forge.react_to_comment(REPOSITORY, comment.id, Reaction.EYES)
        await github.forge.react_to_comment(REPOSITORY, comment.id, Reaction.ROCKET)
    created = [
        effect["content"]
        for each in await stage.requests()
        for effect in each["effect"]
        if effect["what"] == "reaction.created"
    ]
    assert sorted(created) == ["eyes", "rocket"]


@pytest.mark.parametrize("path", ["", "/api/v3"])
async def test_who_edited_a_text_last_is_told(stage: Stage, path: str) -> None:
    """Of github.com and of an Enterprise server, whose GraphQL lies elsewhere."""
    number = await stage.issue(body="One.", **{"as": "mona"})
    await stage.admin("PUT", "/users/tidy[bot]", {"kind": "Bot"})
    github = stage.connect(path=path)
    try:
        assert await github.forge.last_edit(REPOSITORY, number) is None
        for login, is_bot in (("mona", False), ("tidy[bot]", True)):
            order = {"body": f"By {login}.", "as": login}
            await stage.admin("POST", f"/repos/{REPOSITORY}/issues/{number}/edit", order)
            edit = await github.forge.last_edit(REPOSITORY, number)
            assert edit is not None
            assert (edit.editor, edit.is_bot) == (login, is_bot)
        with pytest.raises(NotFound):
            await github.forge.last_edit(REPOSITORY, number + 1)
    finally:
        await github.close()


async def test_a_comment_is_read_with_all_that_a_command_needs(
    github: GitHubConnection, stage: Stage
) -> None:
    number = await stage.issue()
    await stage.admin("PUT", "/users/mona", {"association": "MEMBER"})
    made = await stage.post(
        f"/repos/{REPOSITORY}/issues/{number}/comment", body="/run", **{"as": "mona"}
    )
    since = stage.clock.now() - timedelta(minutes=1)
    (comment,) = [each async for each in github.forge.comments_since(REPOSITORY, since)]
    assert comment.id == made["id"]
    assert (comment.body, comment.author, comment.number) == ("/run", "mona", number)
    assert comment.author_association == "MEMBER"
    assert comment.updated_at is not None
    own = await github.client.create_comment(REPOSITORY, number, "x")
    assert own.author_is_bot
    assert own.author == await github.forge.own_login()


async def test_what_changed_since_is_listed_oldest_first(
    github: GitHubConnection, stage: Stage
) -> None:
    old = await stage.issue("old")
    stage.clock.ahead = timedelta(minutes=10)
    since = stage.clock.now()
    numbers = [await stage.issue(f"issue {index}") for index in range(105)]
    stage.clock.ahead = timedelta(minutes=20)
    await stage.post(f"/repos/{REPOSITORY}/issues/{numbers[0]}/close")
    await stage.post(f"/repos/{REPOSITORY}/issues/{old}/comment", body="new")
    listed = []
    async for each in github.forge.issues_since(REPOSITORY, since):
        listed.append(each)
        if len(listed) == 1:
            # What changes between two pages must not hide anything else.
            stage.clock.ahead = timedelta(minutes=30)
            await stage.post(f"/repos/{REPOSITORY}/issues/{numbers[5]}/close")
    assert {each.number for each in listed} == {*numbers, old}
    assert [each.created_at for each in listed] == sorted(each.created_at for each in listed)
    assert next(each.state for each in listed if each.number == numbers[0]) == "closed"
    comments = [each async for each in github.forge.comments_since(REPOSITORY, since)]
    assert [(each.number, each.body) for each in comments] == [(old, "new")]


async def test_events_of_an_issue_have_ids(github: GitHubConnection, stage: Stage) -> None:
    number = await stage.issue()
    await stage.post(f"/repos/{REPOSITORY}/issues/{number}/close")
    await stage.post(f"/repos/{REPOSITORY}/issues/{number}/reopen")
    events = await github.forge.issue_events(REPOSITORY, number)
    assert [each.event for each in events] == ["closed", "reopened"]
    assert events[0].id < events[1].id
    await stage.post(f"/repos/{REPOSITORY}/issues/{number}/label", names=["agent"])
    await stage.post(f"/repos/{REPOSITORY}/issues/{number}/assign", names=["octocat"])
    events = await github.forge.issue_events(REPOSITORY, number)
    assert [each.subject for each in events[2:]] == ["agent", "octocat"]


async def test_every_reachable_repository_is_listed(github: GitHubConnection, stage: Stage) -> None:
    await stage.post("/repos", repository="acme/two", files={"a": "1"})
    await stage.post("/repos", repository="other/three", files={"a": "1"})
    await stage.post("/installations", account="other")
    reached = {each.full_name async for each in github.forge.repositories()}
    assert reached == {REPOSITORY, "acme/two", "other/three"}
    person = stage.connect(token=TOKEN)
    try:
        assert reached <= {each.full_name async for each in person.forge.repositories()}
    finally:
        await person.close()


async def test_one_installation_that_refuses_us_hides_no_other(
    github: GitHubConnection, stage: Stage
) -> None:
    await stage.post("/repos", repository="other/three", files={"a": "1"})
    await stage.post("/installations", account="other")
    await stage.fault("status", "apps/create-installation-access-token", status=403)
    reached = {each.full_name async for each in github.forge.repositories()}
    assert len(reached) == 1
    assert reached < {REPOSITORY, "other/three"}


async def test_failed_deliveries_are_listed_once_each_and_sent_again(
    github: GitHubConnection, stage: Stage
) -> None:
    await stage.admin("PUT", "/webhooks", {"urls": ["http://127.0.0.1:9/hook"], "secret": "s"})
    since = stage.clock.now() - timedelta(seconds=2)
    number = await stage.issue()
    await stage.post("/webhooks/drain")
    failed = [each async for each in github.forge.failed_deliveries(since)]
    assert [(each.event, each.action, each.status_code) for each in failed] == [
        ("issues", "opened", 0)
    ]
    await github.forge.redeliver(failed[0].id)
    await stage.post("/webhooks/drain")
    again = [each async for each in github.forge.failed_deliveries(since)]
    assert [each.guid for each in again] == [failed[0].guid]
    assert again[0].id != failed[0].id
    later = stage.clock.now() + timedelta(minutes=1)
    assert [each async for each in github.forge.failed_deliveries(later)] == []
    assert number > 0


async def test_a_person_has_no_deliveries(stage: Stage) -> None:
    person = stage.connect(token=TOKEN)
    try:
        assert [each async for each in person.forge.failed_deliveries(stage.clock.now())] == []
        with pytest.raises(Invalid):
            await person.forge.redeliver(1)
    finally:
        await person.close()


async def test_the_remote_tells_when_a_branch_was_moved_and_by_whom(
    github: GitHubConnection, stage: Stage
) -> None:
    tip = await github.client.branch_tip(REPOSITORY, "main")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = {"ref": "refs/heads/fix-1", "sha": tip}
    url = f"{stage.sim.url}/repos/{REPOSITORY}/git/refs"
    async with stage.session.post(url, json=body, headers=headers) as answer:
        assert answer.status == 201
    (change,) = await github.forge.ref_changes(REPOSITORY, "fix-1")
    assert change.after == tip
    assert change.actor
    assert await github.forge.ref_changes(REPOSITORY, "fix-2") == []
