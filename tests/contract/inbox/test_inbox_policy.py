"""Every rule of the policy, by what people do on GitHub and what becomes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from inbox_stage import Inbox
from tests.fakes.github_stage import REPOSITORY

from issuesandbox.ports.inbox import Record

Open = Callable[[str], Awaitable[Inbox]]
PERMISSION = "repos/get-collaborator-permission-level"


async def _opened_by(inbox: Inbox, login: str, **more: Any) -> bool:
    return inbox.spec(await inbox.issue(login=login, **more)) is not None


async def test_by_default_owners_and_members_start_runs_and_nobody_else(inbox: Inbox) -> None:
    assert await _opened_by(inbox, "owner")
    assert await _opened_by(inbox, "member")
    for login in ("helper", "stranger"):
        number = await inbox.issue(login=login, labels=["agent"], body="@issuesandbox /run")
        await inbox.act(number, "edit", login, body="/run")
        await inbox.say(number, "/run", login)
        await inbox.say(number, "@issuesandbox please", login)
        assert inbox.spec(number) is None


async def test_a_minimum_permission_is_asked_of_github(opened: Open) -> None:
    inbox = await opened("defaults: {associations: [], minimumPermission: triage}")
    assert await _opened_by(inbox, "helper")
    assert not await _opened_by(inbox, "stranger")
    asked = len(await inbox.stage.requests(PERMISSION))
    assert asked == 2
    assert await _opened_by(inbox, "helper")
    assert len(await inbox.stage.requests(PERMISSION)) == asked, "it is remembered for a while"
    # Whoever loses it can start nothing a minute later.
    await inbox.stage.admin("PUT", "/users/helper", {"permission": "read", "association": "NONE"})
    inbox.later(61)
    assert not await _opened_by(inbox, "helper")


async def test_a_mention_an_assignee_or_a_command_alone_may_be_what_counts(opened: Open) -> None:
    inbox = await opened("defaults: {on: [mention], mention: agent}")
    assert not await _opened_by(inbox, "owner")
    assert await _opened_by(inbox, "owner", body="@agent please")
    number = await inbox.issue(login="stranger")
    await inbox.say(number, "@agent please", "stranger")
    assert inbox.spec(number) is None
    said = await inbox.say(number, "Look at this, @agent", "member")
    spec = inbox.spec(number)
    assert spec is not None
    assert spec["run"]["trigger"] == f"c{said}"

    inbox = await opened("defaults: {on: [assignee], assignees: [helper]}")
    number = await inbox.issue()
    await inbox.act(number, "assign", "owner", names=["member"])
    assert inbox.spec(number) is None
    await inbox.act(number, "assign", "owner", names=["helper"])
    assert inbox.spec(number) is not None

    inbox = await opened("defaults: {on: [command]}")
    number = await inbox.issue(labels=["agent"])
    await inbox.act(number, "edit", body="More.")
    assert inbox.spec(number) is None
    await inbox.say(number, "/run")
    assert inbox.spec(number) is not None


async def test_bots_are_listened_to_by_their_exact_name_alone(opened: Open) -> None:
    bot = {"kind": "Bot", "permission": "admin", "association": "MEMBER"}
    for allowed in ("*[bot]", "helper-two[bot]"):
        inbox = await opened(f'defaults: {{allowedBots: ["{allowed}"]}}')
        await inbox.stage.admin("PUT", "/users/helper[bot]", bot)
        assert not await _opened_by(inbox, "helper[bot]")
    inbox = await opened('defaults: {allowedBots: ["helper[bot]", "issuesandbox[bot]"]}')
    assert await _opened_by(inbox, "helper[bot]")
    # Not even the policy can make us listen to ourselves.
    own = await inbox.github.forge.own_login()
    assert own == "issuesandbox[bot]"
    number = await inbox.issue(login="stranger")
    await inbox.say(number, "/run", own)
    assert inbox.spec(number) is None


@pytest.mark.parametrize("ignored", [True, False])
async def test_locked_issues_start_nothing_unless_the_policy_says_so(
    opened: Open, ignored: bool
) -> None:
    inbox = await opened(f"defaults: {{on: [command], ignoreLocked: {str(ignored).lower()}}}")
    number = await inbox.issue()
    await inbox.act(number, "lock", "owner")
    await inbox.say(number, "/run", "member")
    assert (inbox.spec(number) is None) is ignored


MANY = """
defaults: {label: bot, on: [label], namespace: rest}
repositories:
  - match: ["ACME/*", "!acme/secret*"]
    rules:
      on: [opened, label]
      namespace: acme
      template: {sandbox: {snapshot: node}, run: {keepAlive: true}}
  - match: ["other/lib"]
"""


async def test_repositories_of_several_installations_have_their_own_rules(opened: Open) -> None:
    inbox = await opened(MANY)
    stage = inbox.stage
    for name in ("acme/secret-1", "other/lib", "other/app"):
        await stage.post("/repos", repository=name, files={"a": "1"})
    await stage.post("/installations", account="other")

    async def made(repository: str, *labels: str) -> dict[str, Any]:
        inbox.later()
        order = {"title": "It breaks", "as": "owner"}
        number = (await stage.post(f"/repos/{repository}/issues", **order))["number"]
        if labels:
            inbox.later()
            path = f"/repos/{repository}/issues/{number}/label"
            await stage.admin("POST", path, {"names": [*labels], "as": "owner"})
        await inbox.settled()
        live = inbox.index.owner(repository, number)
        return inbox.cluster.bodies[live.name] if live else {}

    body = await made(REPOSITORY)
    assert body["metadata"]["namespace"] == "acme"
    assert body["spec"]["sandbox"] == {"snapshot": "node"}
    assert body["spec"]["run"]["keepAlive"] is True
    assert await made("acme/secret-1", "bot") == {}
    assert await made("other/lib", "agent") == {}
    body = await made("other/lib", "bot")
    assert body["metadata"]["namespace"] == "rest"
    assert "sandbox" not in body["spec"]
    assert await made("other/app", "bot") == {}
    assert await inbox.catch_up.look()


async def test_issues_of_a_repository_that_was_just_added_are_found(inbox: Inbox) -> None:
    stage = inbox.stage
    await stage.post("/repos", repository="other/lib", files={"a": "1"})
    inbox.later()
    number = (await stage.post("/repos/other/lib/issues", title="Early", **{"as": "owner"}))[
        "number"
    ]
    assert inbox.index.owner("other/lib", number) is None
    await stage.post("/installations", account="other")
    await inbox.settled()
    assert await inbox.catch_up.look()
    assert inbox.index.owner("other/lib", number) is not None


async def test_an_edit_counts_by_who_made_it(opened: Open) -> None:
    """Whoever may write can edit the words of others; they stay those of who wrote them."""
    inbox = await opened("defaults: {associations: [OWNER], minimumPermission: admin}")
    number = await inbox.issue(body="Please.")
    before = inbox.cluster.triggers[number][:]
    await inbox.act(number, "edit", "member", body="Something else.")
    assert inbox.cluster.triggers[number] == before
    assert await inbox.catch_up.look()
    assert inbox.cluster.triggers[number] == before
    comment = await inbox.say(number, "just talk")
    for login, wanted in (("member", before), ("owner", [*before, f"c{comment}"])):
        inbox.later()
        path = f"/repos/{REPOSITORY}/comments/{comment}"
        await inbox.stage.admin("PATCH", path, {"body": "talk", "as": login})
        inbox.later()
        await inbox.stage.admin("PATCH", path, {"body": "/run", "as": login})
        await inbox.settled()
        assert inbox.cluster.triggers[number] == wanted, login
        assert await inbox.catch_up.look()
        assert inbox.cluster.triggers[number] == wanted, login
    await inbox.act(number, "edit", "owner", body="Something better.")
    assert len(inbox.cluster.triggers[number]) == len(before) + 2


async def test_a_mention_is_obeyed_once_however_often_it_is_edited(opened: Open) -> None:
    inbox = await opened("defaults: {on: [mention, command], mention: agent}")
    number = await inbox.issue()
    said = await inbox.say(number, "@agent please")
    await inbox.say(number, "/run")
    before = inbox.cluster.triggers[number][:]
    assert before[0] == f"c{said}"
    inbox.later()
    path = f"/repos/{REPOSITORY}/comments/{said}"
    await inbox.stage.admin("PATCH", path, {"body": "@agent, please!", "as": "owner"})
    await inbox.settled()
    assert inbox.cluster.triggers[number] == before


async def test_who_must_be_asked_for_is_so_also_for_what_was_missed(opened: Open) -> None:
    inbox = await opened("defaults: {associations: [], minimumPermission: triage}")
    await inbox.deafen()
    helpers, strangers = await inbox.issue(login="helper"), await inbox.issue(login="stranger")
    inbox.later(10)
    for number in (helpers, strangers):
        await inbox.say(number, "Anybody?", "stranger")
    assert await inbox.catch_up.look()
    assert inbox.spec(helpers) is not None
    assert inbox.spec(strangers) is None


async def test_a_reopened_issue_counts_by_who_reopens_it(inbox: Inbox) -> None:
    number = await inbox.issue()
    before = inbox.cluster.triggers[number][:]
    for login, runs in (("helper", 0), ("member", 1)):
        await inbox.act(number, "close", "owner")
        await inbox.act(number, "reopen", login)
        assert await inbox.catch_up.look()
        assert len(inbox.cluster.triggers[number]) == len(before) + runs, login


async def test_a_history_that_lags_behind_swallows_no_second_reopen(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await inbox.issue()
    await inbox.act(number, "close")
    await inbox.act(number, "reopen")
    before = inbox.cluster.triggers[number][:]
    inbox.later(60)
    listed = await inbox.github.forge.issue_events(REPOSITORY, number)

    async def lagging(repository: str, number: int) -> Any:
        return listed

    with monkeypatch.context() as patched:
        patched.setattr(inbox.github.forge, "issue_events", lagging)
        await inbox.act(number, "close")
        await inbox.act(number, "reopen")
        assert inbox.cluster.triggers[number] == before
    journal = await inbox.stage.admin("GET", "/journal?since=0")
    statuses = [each["status"] for each in journal if each["type"] == "delivery"]
    assert statuses[-1] == 503, "GitHub knows that it was not taken"
    assert await inbox.catch_up.look()
    assert len(inbox.cluster.triggers[number]) == len(before) + 1


async def test_a_field_that_somebody_holds_is_told_of(
    inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    number = await inbox.issue()
    live = inbox.index.owner(REPOSITORY, number)
    assert live is not None
    body = inbox.cluster.bodies[live.name]
    body["spec"]["desiredState"] = "Stopped"
    theirs = {"manager": "kubectl-patch", "fieldsV1": {"f:spec": {"f:desiredState": {}}}}
    body["metadata"]["managedFields"].append(theirs)
    inbox.index.put(body)
    await inbox.act(number, "edit", body="More.")
    told = [each for each in caplog.records if each.message == "field held"]
    assert [getattr(each, "fields", "") for each in told] == ["spec.desiredState"]


async def test_a_stranger_cannot_spend_our_allowance_at_github(inbox: Inbox) -> None:
    number = await inbox.issue(login="stranger")
    for _ in range(8):
        await inbox.say(number, "/run", "stranger")
    asked = len(await inbox.stage.requests())
    assert len(await inbox.answers(number)) == 1
    await inbox.say(number, "/run", "stranger")
    spent = len(await inbox.stage.requests()) - asked
    assert spent == 1, "our own look at the answers"
    assert inbox.spec(number) is None
    await inbox.say(number, "/run", "member")
    assert inbox.spec(number) is not None


async def test_a_policy_under_another_key_is_a_slip_and_not_the_defaults(opened: Open) -> None:
    inbox = await opened("defaults: {on: [command]}")
    inbox.cluster.maps["policy"] = Record({"policy.yml": "defaults: {on: [opened]}"}, "7")
    await inbox.policies.read()
    assert "no key `policy.yaml`" in inbox.policies.problem
    assert not await _opened_by(inbox, "owner"), "the last good one stays in force"
    del inbox.cluster.maps["policy"]
    await inbox.policies.read()
    assert "is gone" in inbox.policies.problem
    assert not await _opened_by(inbox, "owner"), "the last good one stays in force"
    inbox.cluster.maps["policy"] = Record({"policy.yaml": ""}, "8")
    await inbox.policies.read()
    assert inbox.policies.problem == ""
    assert await _opened_by(inbox, "owner")
