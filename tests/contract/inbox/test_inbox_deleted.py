"""What was deleted stays so: old deliveries, repeated ones and the catch-up bring nothing back."""

from __future__ import annotations

from inbox_stage import Inbox

from issuesandbox.domain.webhook.stamps import Stamp
from issuesandbox.engine.inbox.desk import Effect, Place


async def test_an_old_delete_does_not_touch_what_was_begun_after_it(inbox: Inbox) -> None:
    number = await inbox.issue()
    deleted = await inbox.say(number, "/delete")
    assert inbox.spec(number) is None
    run = await inbox.say(number, "/run")
    before = inbox.spec(number)
    assert before is not None
    assert before["run"]["trigger"] == f"c{run}"
    again, writes = await inbox.answers(number), inbox.cluster.turn

    assert await inbox.catch_up.look()
    await inbox.settled()
    assert inbox.spec(number) == before
    assert inbox.cluster.turn == writes + 1, "nothing but the cursor was written"
    assert await inbox.answers(number) == again, f"c{deleted} was answered twice"


async def test_what_came_before_a_delete_is_not_begun_anew(inbox: Inbox) -> None:
    number = await inbox.issue()
    for text in ("/keep", "/stop", "/continue with care", "/stop"):
        await inbox.say(number, text)
    run = await inbox.say(number, "/run")
    first = list(inbox.cluster.triggers[number])
    deleted = await inbox.say(number, "/delete")
    answered = await inbox.answers(number)
    assert len(answered) == 1

    inbox.later()
    assert await inbox.catch_up.look()
    await inbox.settled()
    assert inbox.spec(number) is None
    # GitHub sends all of it once more, an hour later.
    inbox.later(3600)
    await inbox.resend()
    await inbox.settled()
    assert inbox.spec(number) is None
    assert inbox.cluster.triggers[number] == first
    assert first[-1] == f"c{run}"
    assert await inbox.answers(number) == answered
    assert await inbox.reactions(deleted) == ["eyes", "rocket"]

    again = await inbox.say(number, "/run")
    assert inbox.cluster.triggers[number] == [*first, f"c{again}"]


async def test_a_labelled_issue_whose_time_was_over_does_not_run_again(inbox: Inbox) -> None:
    number = await inbox.issue(login="stranger")
    await inbox.act(number, "label", "member", names=["agent"])
    assert inbox.spec(number) is not None
    inbox.later()
    marker = "<!-- issuesandbox:status uid-1 -->"
    await inbox.github.client.create_comment("acme/app", number, f"{marker}\n\nSolved.")
    await inbox.vanish(number)
    await inbox.say(number, "thanks!", "stranger")
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is None

    # What is asked for afterwards is found, though nobody delivered it.
    await inbox.deafen()
    await inbox.act(number, "unlabel", "member", names=["agent"])
    await inbox.act(number, "label", "member", names=["agent"])
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is not None


async def test_a_command_that_was_done_is_not_done_again_when_its_resource_is_gone(
    inbox: Inbox,
) -> None:
    """The comment of the runs is older than the command, but its last word is not."""
    number = await inbox.issue()
    marker = "<!-- issuesandbox:status uid-1 -->"
    client = inbox.github.client
    sticky = await client.create_comment("acme/app", number, f"{marker}\n\nRunning.")
    await inbox.say(number, "/run")
    inbox.later()
    await client.update_comment("acme/app", sticky.id, f"{marker}\n\nSolved.")
    await inbox.vanish(number)
    assert await inbox.catch_up.look()
    inbox.later(120)
    await inbox.resend()
    await inbox.settled()
    assert inbox.spec(number) is None


async def test_a_delete_does_not_take_what_was_ordered_while_it_was_under_way(
    inbox: Inbox,
) -> None:
    number = await inbox.issue()
    inbox.later()
    stamp = Stamp(inbox.stage.clock.now())
    inbox.cluster.meanwhile.append(lambda: inbox.say(number, "/run"))
    done = await inbox.desk.delete(Place("acme/app", number, "issues", {}), stamp)
    assert done.effect is Effect.UNCHANGED
    assert inbox.spec(number) is not None
    done = await inbox.desk.delete(
        Place("acme/app", number, "issues", {}), Stamp(inbox.stage.clock.now(), 2**62)
    )
    assert done.effect is Effect.CHANGED
    assert inbox.spec(number) is None


async def test_an_answer_to_a_stranger_hides_nothing_that_was_missed(inbox: Inbox) -> None:
    await inbox.deafen()
    number = await inbox.issue()
    await inbox.listen()
    await inbox.say(number, "/run", "stranger")
    assert len(await inbox.answers(number)) == 1
    assert inbox.spec(number) is None
    assert await inbox.catch_up.look()
    assert inbox.spec(number) is not None
