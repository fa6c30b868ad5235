"""What is missed while something is down comes back, and nothing comes twice."""

from __future__ import annotations

from typing import Any

from webhook_cable import cable
from webhook_stage import WebhookStage


async def test_while_the_api_server_is_down_deliveries_fail_and_come_back(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    async with cable(stage.access.server) as wire:
        stage.adapters.server = wire.address
        await stage.start(ISSUESANDBOX_CATCH_UP_EVERY="1s")
        await wire.pull()
        number = await stage.issue("Nobody hears me")
        await stage.drained()
        assert [each["status"] for each in await stage.deliveries()] == [503]
        await wire.plug()

        async def arrived() -> dict[str, Any]:
            return await stage.resource(number)

        made = await stage.until(arrived, "the event to arrive", 30)
        assert made["spec"]["issue"]["title"] == "Nobody hears me"


async def test_failed_deliveries_are_asked_for_again(hook_stage: WebhookStage) -> None:
    stage = hook_stage
    await stage.sim("POST", "webhooks/rules", {"kind": "lose", "count": 2, "noticed": True})
    await stage.deliver_to("http://127.0.0.1:9")
    number = await stage.issue("Lost")
    await stage.act(number, "delete")
    kept = await stage.issue("Lost as well")
    await stage.drained()
    await stage.start(ISSUESANDBOX_CATCH_UP_EVERY="1s")

    async def again() -> bool:
        found = await stage.deliveries()
        return any(each["attempt"] > 1 or not each["lost"] for each in found)

    await stage.until(again, "GitHub to send it again", 30)
    await stage.until(lambda: stage.resource(kept), "the resource")


async def test_what_happened_while_github_gave_no_answer_is_found_afterwards(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    await stage.start(ISSUESANDBOX_CATCH_UP_EVERY="1s")
    before = await stage.issue("Before")
    await stage.drained()
    await stage.until(lambda: _passed(stage, 1), "a catch-up")
    known = await stage.resource(before)
    await stage.sim("POST", "faults", {"kind": "status", "status": 503, "count": None})
    await stage.deliver_to()
    stage.clock.tick()
    during = await stage.issue("During")
    said = await stage.say(before, "/run again")
    closed = await stage.issue("Opened and closed")
    await stage.act(closed, "close")
    await stage.until(lambda: _failed(stage), "a catch-up that fails")
    await stage.sim("DELETE", "faults")
    # An outage makes the catch-up wait for longer.
    await stage.adapters.children[-1].stop()
    stage.adapters.spawn(ISSUESANDBOX_CATCH_UP_EVERY="1s")
    await stage.until(lambda: stage.resource(during), "what was opened meanwhile", 30)

    async def ran() -> bool:
        return bool((await stage.resource(before))["spec"]["run"]["trigger"] == f"c{said}")

    await stage.until(ran, "the command", 30)
    made = await stage.resource(before)
    assert made["metadata"]["uid"] == known["metadata"]["uid"]
    assert await stage.resource(closed) == {}
    passes = await stage.passes()
    version = made["metadata"]["resourceVersion"]
    await stage.until(lambda: _passed(stage, passes + 2), "two more catch-ups")
    assert (await stage.resource(before))["metadata"]["resourceVersion"] == version


async def test_what_was_deleted_on_purpose_is_not_found_again(hook_stage: WebhookStage) -> None:
    stage = hook_stage
    await stage.start(ISSUESANDBOX_CATCH_UP_EVERY="1s")
    number = await stage.issue("Enough")
    stage.clock.tick()
    await stage.say(number, "/delete")
    await stage.drained()

    async def told() -> bool:
        return any("being deleted" in each["body"] for each in await stage.comments(number))

    await stage.until(told, "the answer")
    await stage.let_go()
    stage.clock.tick()
    await stage.say(number, "and thanks", "stranger")
    passes = await stage.passes()
    await stage.until(lambda: _passed(stage, passes + 2), "two more catch-ups")
    assert await stage.resources() == []


async def test_where_the_app_was_just_installed_nobody_waits_for_the_next_pass(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    await stage.start(ISSUESANDBOX_CATCH_UP_EVERY="1h")
    await stage.until(lambda: _passed(stage, 1), "a catch-up")
    await stage.sim("POST", "repos", {"repository": "other/lib", "files": {"a": "b"}})
    await stage.sim("POST", "repos/other/lib/issues", {"title": "Early", "as": "owner"})
    await stage.sim("POST", "installations", {"account": "other"})
    made = await stage.until(stage.resources, "the issue that was there before")
    assert [each["spec"]["issue"]["repository"] for each in made] == ["other/lib"]


async def test_a_delivery_on_its_way_is_answered_before_the_adapter_ends(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    await stage.start()
    number = await stage.issue("Please", login="stranger")
    await stage.drained()
    asked = "repos/get-collaborator-permission-level"
    await stage.sim("POST", "faults", {"kind": "slow", "operation": asked, "seconds": 1})
    await stage.act(number, "label", "member", names=["agent"])
    (child,) = stage.adapters.children
    assert await child.stop() == 0
    await stage.drained()
    last = (await stage.deliveries())[-1]
    assert (last["action"], last["status"]) == ("labeled", 202)
    assert await stage.resource(number)


async def _failed(stage: WebhookStage) -> bool:
    return "catch-up failed" in (stage.adapters.folder / "logs" / "webhook-0.log").read_text()


async def _passed(stage: WebhookStage, passes: int) -> bool:
    return await stage.passes() >= passes
