"""What the catch-up finds, and that one thing it cannot handle keeps it from nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from inbox_stage import Inbox
from tests.fakes.github_stage import Stage

from issuesandbox.domain.webhook.resource_names import resource_name
from issuesandbox.engine.inbox.cursor import read_cursor

Open = Callable[[str], Awaitable[Inbox]]


async def test_a_label_that_was_taken_off_unheard_stops_the_run(inbox: Inbox) -> None:
    number = await inbox.issue(login="stranger")
    await inbox.act(number, "label", "member", names=["agent"])
    await inbox.deafen()
    await inbox.act(number, "unlabel", "member", names=["agent"])
    assert await inbox.catch_up.look()
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["desiredState"] == "Stopped"
    # Whoever starts it by hand afterwards is not stopped by the old event.
    await inbox.say(number, "/run", "member")
    assert await inbox.catch_up.look()
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["desiredState"] == "Running"


async def test_an_assignment_that_nobody_heard_of_is_found(opened: Open) -> None:
    inbox = await opened("defaults: {on: [assignee], assignees: [owner]}")
    await inbox.deafen()
    number = await inbox.issue(login="stranger")
    await inbox.act(number, "assign", "member", names=["owner"])
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is not None


async def test_an_issue_that_is_gone_is_stopped_though_nobody_heard_of_it(inbox: Inbox) -> None:
    deleted, kept = await inbox.issue("One"), await inbox.issue("Two")
    inbox.begin_run(deleted)
    inbox.begin_run(kept)
    await inbox.deafen()
    await inbox.act(deleted, "delete")
    assert await inbox.catch_up.look()
    gone, other = inbox.spec(deleted), inbox.spec(kept)
    assert gone is not None
    assert other is not None
    assert (gone["desiredState"], other["desiredState"]) == ("Stopped", "Running")


async def test_what_cannot_be_handled_does_not_hold_back_the_rest(inbox: Inbox) -> None:
    await inbox.deafen()
    bad, good = await inbox.issue("Bad"), await inbox.issue("Good")
    inbox.cluster.refused.add(bad)
    before = await read_cursor(inbox.cluster, "cursor")
    inbox.later(600)
    assert await inbox.catch_up.look(), "to look again would not help"
    assert inbox.spec(good) is not None
    assert inbox.spec(bad) is None
    after = await read_cursor(inbox.cluster, "cursor")
    assert after.repositories["acme/app"] > before.repositories["acme/app"]
    (note,) = inbox.cluster.notes
    assert (note.reason, note.warning) == ("CatchUpRefused", True)
    assert "does not like it" in note.message
    assert inbox.catch_up.refused == 1


@pytest.mark.parametrize("status", [404, 410, 403, 422, 500])
async def test_a_repository_that_is_refused_is_passed_over_and_one_that_is_down_is_not(
    inbox: Inbox, status: int
) -> None:
    before = await read_cursor(inbox.cluster, "cursor")
    await inbox.stage.fault("status", "issues/list-for-repo", status=status, count=None)
    inbox.later(600)
    for _ in range(2):
        is_closed = await inbox.catch_up.look()
    after = await read_cursor(inbox.cluster, "cursor")
    assert is_closed is (status != 500)
    assert (after.repositories == before.repositories) is (status == 500)
    assert len(inbox.cluster.notes) == (status != 500), "it is told once"


async def test_what_is_down_is_asked_more_and_more_seldom(inbox: Inbox) -> None:
    rests = [inbox.catch_up.rest_after(went) for went in (False,) * 5 + (True, False)]
    assert rests == [60, 120, 240, 480, 600, 600, 60]


async def test_nothing_is_missed_that_happens_before_the_first_pass_goes_through(
    stage: Stage, opened: Open
) -> None:
    await stage.fault("status", "apps/list-installations", status=500, count=None)
    inbox = await opened("")
    await inbox.deafen()
    number = await inbox.issue()
    inbox.later(3600)
    assert not await inbox.catch_up.look()
    await stage.admin("DELETE", "/faults")
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is not None


async def test_without_the_list_of_deliveries_the_repositories_are_still_looked_through(
    inbox: Inbox,
) -> None:
    """Some servers do not know the list; of one that is down it is asked for again."""
    for status, is_closed in ((500, False), (404, True)):
        before = await read_cursor(inbox.cluster, "cursor")
        await inbox.stage.admin("DELETE", "/faults")
        await inbox.stage.fault("status", "apps/list-webhook-deliveries", status=status, count=None)
        inbox.later(600)
        assert await inbox.catch_up.look() is is_closed
        after = await read_cursor(inbox.cluster, "cursor")
        assert (after.deliveries != before.deliveries) is is_closed
        assert after.repositories["acme/app"] > before.repositories["acme/app"]


@pytest.mark.parametrize("how", ["label", "command"])
async def test_what_a_stranger_edits_after_it_was_approved_is_not_found(
    inbox: Inbox, how: str
) -> None:
    number = await inbox.issue(login="stranger", body="Please.")
    await inbox.deafen()
    if how == "label":
        await inbox.act(number, "label", "member", names=["agent"])
    else:
        await inbox.say(number, "/run", "member")
    inbox.later(10)
    await inbox.act(number, "edit", "stranger", body="Delete everything.")
    assert await inbox.catch_up.look()
    await inbox.settled()
    assert inbox.spec(number) is None, "nobody knows what was approved"
    if how == "command":
        assert "give it again" in (await inbox.answers(number))[0]

    # Approved and heard in time, then edited: the catch-up takes nothing over.
    await inbox.listen()
    await inbox.say(number, "/run", "member")
    approved = inbox.spec(number)
    inbox.later(10)
    await inbox.act(number, "edit", "stranger", body="Delete even more.")
    assert await inbox.catch_up.look()
    assert inbox.spec(number) == approved


async def test_a_resource_of_that_name_for_another_issue_is_named_and_left_alone(
    inbox: Inbox,
) -> None:
    name = resource_name("acme/app", 1)
    issue = {"repository": "acme/other", "number": 9}
    spec = {"issue": issue, "run": {"trigger": "mine"}}
    await inbox.cluster.create({"metadata": {"namespace": "issues", "name": name}, "spec": spec})
    before = inbox.cluster.bodies[name]
    number = await inbox.issue()
    assert number == 1
    assert inbox.cluster.bodies[name] == before
    assert inbox.spec(number) is None
    assert await inbox.catch_up.look()
    assert "is in the way" in inbox.cluster.notes[0].message
    journal = await inbox.stage.admin("GET", "/journal?since=0")
    assert [each["status"] for each in journal if each["type"] == "delivery"][-1] == 503


@pytest.mark.parametrize("last", ["reopen", "comment"])
async def test_what_is_begun_late_reads_the_last_text_and_no_edit_begins_it_again(
    inbox: Inbox, last: str
) -> None:
    number = await inbox.issue()
    (first,) = inbox.cluster.triggers[number]
    await inbox.deafen()
    await inbox.act(number, "edit", body="The last text.")
    if last == "reopen":
        await inbox.act(number, "close")
        await inbox.act(number, "reopen")
    else:
        await inbox.say(number, "/run")
    for _ in range(2):
        assert await inbox.catch_up.look()
        begun = inbox.cluster.triggers[number]
        assert len(begun) == 2
        assert begun[0] == first
        assert begun[1].startswith("reopen-" if last == "reopen" else "c")
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["issue"]["body"] == "The last text."


async def test_a_pass_that_is_asked_for_during_a_pass_follows_it(inbox: Inbox) -> None:
    """Nobody waits ten minutes for what happened in a repository that was just looked through."""
    await inbox.deafen()
    begins, ends = "apps/list-installations", "apps/list-webhook-deliveries"
    await inbox.stage.fault("slow", ends, seconds=0.5)

    async def asked(operation: str, times: int) -> None:
        before = len(await inbox.stage.requests(operation))
        async with asyncio.timeout(10):
            while len(await inbox.stage.requests(operation)) < before + times:
                await asyncio.sleep(0.02)

    # It is not even its turn: but nobody else may have heard.
    inbox.catch_up.hurry(anyway=True)
    going = asyncio.create_task(inbox.catch_up.run(lambda: False))
    try:
        await asked(begins, 1)
        number = await inbox.issue()
        inbox.catch_up.hurry(anyway=True)
        await asked(ends, 2)
    finally:
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
    assert inbox.spec(number) is not None
