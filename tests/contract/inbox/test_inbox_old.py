"""What the catch-up must not take for news: old issues, and words that somebody changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from inbox_stage import Inbox
from tests.fakes.github_stage import REPOSITORY, Stage

Open = Callable[[str], Awaitable[Inbox]]
GRAPHQL = "graphql"


async def test_a_word_under_an_old_issue_begins_nothing(stage: Stage, opened: Open) -> None:
    number = await stage.issue(labels=["agent"], assignees=["owner"], **{"as": "owner"})
    for verb in ("close", "reopen"):
        path = f"/repos/{REPOSITORY}/issues/{number}/{verb}"
        await stage.admin("POST", path, {"as": "owner"})
    stage.clock.ahead += timedelta(minutes=10)
    inbox = await opened("defaults: {on: [opened, edited, label, assignee], assignees: [owner]}")
    await inbox.say(number, "Is anybody there?", "stranger")
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is None
    # What is asked for now counts, though nobody heard it.
    await inbox.deafen()
    await inbox.act(number, "unlabel", "member", names=["agent"])
    await inbox.act(number, "label", "member", names=["agent"])
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is not None


async def _bot(inbox: Inbox) -> str:
    person = {"kind": "Bot", "permission": "admin", "association": "MEMBER"}
    await inbox.stage.admin("PUT", "/users/tidy[bot]", person)
    return "tidy[bot]"


@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("field", ["title", "body"])
async def test_the_edit_of_somebody_who_is_not_listened_to_is_not_taken_for_the_authors(
    inbox: Inbox, field: str, heard: bool
) -> None:
    bot, edit = await _bot(inbox), dict[str, Any]()
    number = await inbox.issue()
    before = inbox.cluster.triggers[number][:]
    if not heard:
        await inbox.deafen()
    for login in (bot, "helper"):
        edit[field] = f"As {login} likes it."
        await inbox.act(number, "edit", login, **edit)
        assert await inbox.catch_up.look()
        assert inbox.cluster.triggers[number] == before, login
    # Whoever may write can approve it by an edit of their own, also one that nobody heard of.
    await inbox.deafen()
    edit[field] = "As a member likes it."
    await inbox.act(number, "edit", "member", **edit)
    assert await inbox.catch_up.look()
    assert len(inbox.cluster.triggers[number]) == len(before) + 1


async def test_an_issue_is_opened_late_only_with_a_text_that_counts(inbox: Inbox) -> None:
    bot = await _bot(inbox)
    await inbox.deafen()
    touched, clean = await inbox.issue("One"), await inbox.issue("Two")
    inbox.later(10)
    await inbox.act(touched, "edit", bot, body="Do something else.")
    await inbox.act(clean, "edit", "owner", body="Do this.")
    assert await inbox.catch_up.look()
    assert inbox.spec(touched) is None
    spec = inbox.spec(clean)
    assert spec is not None
    assert spec["issue"]["body"] == "Do this."


async def test_who_edited_is_asked_only_where_the_text_is_another(inbox: Inbox) -> None:
    number = await inbox.issue()
    for _ in range(2):
        await inbox.say(number, "Thanks.", "stranger")
        assert await inbox.catch_up.look()
    assert await inbox.stage.requests(GRAPHQL) == []


async def test_where_nobody_tells_who_edited_a_stop_still_counts(inbox: Inbox) -> None:
    number = await inbox.issue(labels=["agent"])
    before = inbox.cluster.triggers[number][:]
    await inbox.deafen()
    await inbox.act(number, "edit", "owner", body="Do this.")
    await inbox.act(number, "unlabel", "owner", names=["agent"])
    await inbox.stage.fault("status", GRAPHQL, status=404, count=None)
    assert await inbox.catch_up.look()
    assert inbox.cluster.triggers[number] == before
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["desiredState"] == "Stopped"


async def test_a_comment_that_was_edited_is_nobodys_command(inbox: Inbox) -> None:
    number = await inbox.issue()
    await inbox.deafen()
    path = f"/repos/{REPOSITORY}/comments"
    talk = await inbox.say(number, "Please do not run this.")
    inbox.later()
    await inbox.stage.admin("PATCH", f"{path}/{talk}", {"body": "/stop", "as": "helper"})
    assert await inbox.catch_up.look()
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["desiredState"] == "Running"

    await inbox.listen()
    obeyed = await inbox.say(number, "/run")
    assert inbox.cluster.triggers[number][-1] == f"c{obeyed}"
    inbox.later()
    await inbox.stage.admin("PATCH", f"{path}/{obeyed}", {"body": "/delete", "as": "owner"})
    await inbox.settled()
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is not None
