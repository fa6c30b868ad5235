"""From an event on GitHub to the resource, with real processes and a real API server."""

from __future__ import annotations

from webhook_stage import WebhookStage


async def test_an_opened_issue_becomes_one_resource_that_follows_it(
    hook_stage: WebhookStage,
) -> None:
    # R115
    stage = hook_stage
    await stage.start()
    number = await stage.issue("It breaks", body="Badly.")
    await stage.drained()
    made = await stage.resource(number)
    assert made["metadata"]["name"].startswith(f"acme-app-{number}-")
    assert made["spec"]["issue"]["title"] == "It breaks"
    assert made["spec"]["desiredState"] == "Running"
    first = made["spec"]["run"]["trigger"]

    await stage.act(number, "edit", title="It breaks again")
    await stage.drained()
    edited = await stage.resource(number)
    assert edited["metadata"]["uid"] == made["metadata"]["uid"]
    assert edited["spec"]["issue"]["title"] == "It breaks again"
    assert edited["spec"]["run"]["trigger"] not in (first, None)

    # R60
    await stage.act(number, "close")
    await stage.drained()
    assert (await stage.resource(number))["spec"]["desiredState"] == "Stopped"

    await stage.act(number, "reopen")
    await stage.drained()
    reopened = await stage.resource(number)
    assert reopened["spec"]["desiredState"] == "Running"
    assert reopened["spec"]["run"]["trigger"].startswith("reopen-")
    assert {each["status"] for each in await stage.deliveries()} == {202}
