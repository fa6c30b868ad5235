"""What the adapter writes, and what it leaves alone."""

from __future__ import annotations

from typing import Any

from webhook_stage import WebhookStage

POLICY = """
defaults:
  template:
    sandbox: {snapshot: base}
    run: {limits: {agent: 10m}}
repositories:
  - match: ["acme/*"]
"""


async def test_resources_are_made_from_the_template_and_users_fields_are_left_alone(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    await stage.set_policy(POLICY)
    await stage.start()
    number = await stage.issue("It breaks")
    await stage.drained()
    made = await stage.resource(number)
    assert made["spec"]["sandbox"]["snapshot"] == "base"
    assert made["spec"]["run"]["limits"] == {"agent": "10m"}

    name = stage.path(made["metadata"]["name"])
    mine = {"sandbox": {"snapshot": "mine"}, "issue": {"title": "My own words"}}
    await stage.api("PATCH", name, {"spec": {**mine, "run": {"limits": {"agent": "7m"}}}})
    stage.clock.tick()
    await stage.act(number, "edit", title="GitHub's words", body="New.")
    await stage.drained()
    after = await stage.resource(number)
    assert after["spec"]["sandbox"]["snapshot"] == "mine"
    assert after["spec"]["issue"]["title"] == "My own words"
    assert after["spec"]["issue"]["body"] == "New."
    assert after["spec"]["run"]["limits"] == {"agent": "7m"}
    assert after["spec"]["run"]["trigger"] != made["spec"]["run"]["trigger"]

    # Who patches a trigger, as docs/usage.md shows, orders one run; the next may be GitHub's.
    order = {"spec": {"run": {"trigger": "again-1", "prompt": "Also add a test."}}}
    await stage.api("PATCH", f"{name}?fieldManager=kubectl-patch", order)
    stage.clock.tick()
    await stage.act(number, "edit", body="Newer.")
    await stage.drained()
    run = (await stage.resource(number))["spec"]["run"]
    assert run["trigger"] not in ("again-1", after["spec"]["run"]["trigger"])
    assert not run.get("prompt")

    # A person who stopped it by hand is not overruled from GitHub, and the asker is told.
    await stage.api("PATCH", name, {"spec": {"desiredState": "Stopped"}})
    stage.clock.tick()
    await stage.say(number, "/run")
    await stage.drained()
    assert (await stage.resource(number))["spec"]["desiredState"] == "Stopped"

    async def told() -> bool:
        found = await stage.comments(number)
        return any("`spec.desiredState` was set by hand" in each["body"] for each in found)

    await stage.until(told, "the answer")


async def test_the_resource_that_somebody_made_by_hand_is_the_one_that_follows_the_issue(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    await stage.deliver_to()
    number = await stage.issue("It breaks")
    body: dict[str, Any] = {
        "apiVersion": "issuesandbox.dev/v1alpha1",
        "kind": "IssueSandbox",
        "metadata": {"name": "mine"},
        "spec": {"issue": {"repository": "ACME/App", "number": number}, "run": {}},
    }
    await stage.api("POST", stage.path(), body)
    await stage.start()
    stage.clock.tick()
    await stage.act(number, "edit", body="More.")
    await stage.drained()
    found = await stage.resource(number)
    assert found["metadata"]["name"] == "mine"
    assert found["spec"]["issue"]["repository"] == "ACME/App"
    assert found["spec"]["issue"]["body"] == "More."
    assert found["spec"]["run"]["trigger"]
    stage.clock.tick()
    await stage.act(number, "close")
    await stage.drained()
    assert (await stage.resource(number))["spec"]["desiredState"] == "Stopped"


async def test_an_invalid_policy_keeps_the_last_good_one_and_says_so(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    await stage.set_policy(POLICY)
    await stage.start()
    await stage.set_policy("defaults: {template: {sandbox: {snapshto: typo}}}")

    async def complained() -> list[Any]:
        path = f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events"
        listed = (await stage.api("GET", path))["items"]
        return [each["note"] for each in listed if each["reason"] == "PolicyInvalid"]

    notes = await stage.until(complained, "an Event")
    assert "snapshto" in notes[0]
    assert "the last good one stays in force" in notes[0]
    async with stage.http.get(f"{stage.urls[0]}/metrics") as answer:
        assert "issuesandbox_webhook_policy_valid 0.0" in await answer.text()
    number = await stage.issue("Still served")
    await stage.drained()
    assert (await stage.resource(number))["spec"]["sandbox"]["snapshot"] == "base"

    await stage.set_policy('repositories: [{match: ["other/*"]}]')

    async def valid() -> bool:
        async with stage.http.get(f"{stage.urls[0]}/metrics") as answer:
            return "issuesandbox_webhook_policy_valid 1.0" in await answer.text()

    await stage.until(valid, "the new policy")
    await stage.issue("Not served any more")
    await stage.drained()
    assert len(await stage.resources()) == 1


async def test_an_issue_that_is_deleted_or_transferred_is_stopped(hook_stage: WebhookStage) -> None:
    stage = hook_stage
    await stage.sim("POST", "repos", {"repository": "acme/other", "files": {"a": "b"}})
    await stage.start()
    deleted = await stage.issue("To be deleted")
    transferred = await stage.issue("To be transferred")
    stage.clock.tick()
    await stage.act(deleted, "delete")
    await stage.act(transferred, "transfer", to="acme/other")
    await stage.drained()
    by_repository = {
        (each["spec"]["issue"]["repository"], each["spec"]["issue"]["title"]): each["spec"]
        for each in await stage.resources()
    }
    assert by_repository["acme/app", "To be deleted"]["desiredState"] == "Stopped"
    assert by_repository["acme/app", "To be transferred"]["desiredState"] == "Stopped"
    assert by_repository["acme/other", "To be transferred"]["desiredState"] == "Running"


async def test_commands_on_our_pull_request_and_its_end_reach_the_resource(
    hook_stage: WebhookStage,
) -> None:
    stage = hook_stage
    await stage.start()
    number = await stage.issue("It breaks")
    await stage.sim("POST", "repos/acme/app/push", {"branch": "fix", "files": {"a": "b"}})
    order = {"title": "Fix", "head": "fix", "base": "main", "body": f"Closes #{number}"}
    pull = (await stage.sim("POST", "repos/acme/app/pulls", order))["number"]
    await stage.drained()
    name = (await stage.resource(number))["metadata"]["name"]
    run: dict[str, Any] = {"id": "r1", "attempt": 1, "phase": "Finished", "outcome": "Succeeded"}
    run |= {"startedAt": "2026-01-01T00:00:00Z", "trigger": "x"}
    run |= {"pullRequest": {"number": pull, "url": "http://x/1"}}
    await stage.api("PATCH", f"{stage.path(name)}/status", {"status": {"run": run}})

    async def ran() -> bool:
        stage.clock.tick()
        comment = await stage.say(pull, "/continue with the tests", "member")
        await stage.drained()
        trigger = (await stage.resource(number))["spec"]["run"]["trigger"]
        return bool(trigger == f"c{comment}")

    await stage.until(ran, "the follow-up")  # the index hears of the pull request by a watch
    stage.clock.tick()
    await stage.sim("POST", f"repos/acme/app/pulls/{pull}/close", {"as": "owner"})
    await stage.drained()
    assert (await stage.resource(number))["spec"]["desiredState"] == "Stopped"


async def test_with_global_ids_the_sandbox_is_named_after_githubs_own(
    hook_stage: WebhookStage,
) -> None:
    # R2
    stage = hook_stage
    await stage.start(ISSUESANDBOX_NAMING="GlobalId")
    number = await stage.issue("It breaks")
    await stage.drained()
    made = await stage.resource(number)
    assert made["spec"]["issue"]["id"] > 2_400_000_000
    stage.clock.tick()
    await stage.act(number, "edit", title="Again")
    await stage.drained()
    assert (await stage.resource(number))["spec"]["issue"]["title"] == "Again"
