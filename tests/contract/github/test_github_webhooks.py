"""Webhooks are signed, parse strictly, and go astray exactly as told."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from github_judge import SECRET, Api, Drain, Receiver, strictly
from githubkit_schemas.v2026_03_10 import models as gh


async def _open(admin: Api, repo: str, title: str = "Bug", **more: Any) -> Any:
    return await admin.post(f"/repos/{repo}/issues", {"title": title, **more}, status=200)


async def test_every_delivery_is_signed_over_its_raw_body(
    admin: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    await _open(admin, repo, body="grüße 🚀")
    await drained()
    for delivered in receiver.got:
        digest = hmac.new(SECRET.encode(), delivered.body, hashlib.sha256).hexdigest()
        assert delivered.headers["X-Hub-Signature-256"] == f"sha256={digest}"
        assert delivered.headers["Content-Type"] == "application/json"
        assert delivered.headers["X-GitHub-Delivery"]
    guids = [delivered.headers["X-GitHub-Delivery"] for delivered in receiver.got]
    assert len(set(guids)) == len(guids) == 2


async def test_issue_events_parse_strictly_in_their_order(
    admin: Api, repo: str, installation: int, receiver: Receiver, drained: Drain
) -> None:
    await admin.post("/repos", {"repository": "acme/next"}, status=200)
    await _open(admin, repo, labels=["agent"], **{"as": "mia"})
    issue = f"/repos/{repo}/issues/1"
    for verb, body in (
        ("edit", {"title": "Bugs", "body": "new"}),
        ("label", {"names": ["x"]}),
        ("unlabel", {"names": ["agent"]}),
        ("assign", {"names": ["mia"]}),
        ("unassign", {"names": ["mia"]}),
        ("lock", {"reason": "spam"}),
        ("unlock", {}),
        ("close", {}),
        ("reopen", {}),
        ("transfer", {"to": "acme/next"}),
    ):
        await admin.post(f"{issue}/{verb}", body, status=200)
    await admin.post("/repos/acme/next/issues/1/delete", status=200)
    await drained()
    events = [one for one in receiver.got if one.kind.startswith("issues.")]
    here = [one for one in events if one.json["repository"]["full_name"] == repo]
    models = [
        gh.WebhookIssuesOpened,
        gh.WebhookIssuesLabeled,
        gh.WebhookIssuesEdited,
        gh.WebhookIssuesLabeled,
        gh.WebhookIssuesUnlabeled,
        gh.WebhookIssuesAssigned,
        gh.WebhookIssuesUnassigned,
        gh.WebhookIssuesLocked,
        gh.WebhookIssuesUnlocked,
        gh.WebhookIssuesClosed,
        gh.WebhookIssuesReopened,
        gh.WebhookIssuesTransferred,
    ]
    for model, one in zip(models, here, strict=True):
        model.model_validate_json(one.body, strict=True)
        assert one.json["installation"]["id"] == installation
        assert one.json["organization"]["login"] == "acme"
    assert here[0].json["sender"]["login"] == "mia"
    assert here[2].json["changes"]["title"]["from"] == "Bug"
    there = [one for one in events if one.json["repository"]["full_name"] == "acme/next"]
    assert [one.json["action"] for one in there] == ["opened", "deleted"]
    assert there[0].json["changes"]["old_issue"]["number"] == 1


async def test_comment_pull_request_push_and_installation_events_parse_strictly(
    admin: Api, repo: str, installation: int, receiver: Receiver, drained: Drain
) -> None:
    await _open(admin, repo)
    comment = await admin.post(f"/repos/{repo}/issues/1/comment", {"body": "/run"}, status=200)
    path = f"/repos/{repo}/comments/{comment['id']}"
    await admin.call("PATCH", path, {"body": "/stop"})
    await admin.call("DELETE", path, {"as": "mia"})
    push = {"branch": "fix", "files": {"a": "1"}, "as": "mia"}
    await admin.post(f"/repos/{repo}/push", push, status=200)
    pull = {"title": "Fix", "head": "fix", "base": "main", "body": "Fixes #1"}
    await admin.post(f"/repos/{repo}/pulls", pull, status=200)
    await admin.post(f"/repos/{repo}/push", push | {"files": {"a": "2"}}, status=200)
    await admin.post(f"/repos/{repo}/issues/2/edit", {"title": "Fixed"}, status=200)
    await admin.post(f"/repos/{repo}/pulls/2/close", status=200)
    await admin.post(f"/repos/{repo}/pulls/2/reopen", status=200)
    await admin.post(f"/repos/{repo}/pulls/2/merge", status=200)
    await admin.call("PATCH", f"/installations/{installation}", {"repositories": [repo]})
    await drained()
    models: dict[str, Any] = {
        "issue_comment.created": gh.WebhookIssueCommentCreated,
        "issue_comment.edited": gh.WebhookIssueCommentEdited,
        "issue_comment.deleted": gh.WebhookIssueCommentDeleted,
        "pull_request.opened": gh.WebhookPullRequestOpened,
        "pull_request.synchronize": gh.WebhookPullRequestSynchronize,
        "pull_request.edited": gh.WebhookPullRequestEdited,
        "pull_request.closed": gh.WebhookPullRequestClosed,
        "pull_request.reopened": gh.WebhookPullRequestReopened,
        "push": gh.WebhookPush,
        "installation.created": gh.WebhookInstallationCreated,
        "installation_repositories.added": gh.WebhookInstallationRepositoriesAdded,
    }
    assert models.keys() <= set(receiver.kinds())
    for one in receiver.got:
        if one.kind in models:
            models[one.kind].model_validate_json(one.body, strict=True)
    merged = [one for one in receiver.got if one.kind == "pull_request.closed"][-1]
    assert merged.json["pull_request"]["merged"] is True
    assert "issues.closed" in receiver.kinds(), "merging closes what the text says it fixes"


async def test_events_of_the_first_opened_issue_have_no_unknown_fields(
    admin: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    receiver.got.clear()
    await _open(admin, repo)
    await drained()
    strictly(gh.WebhookIssuesOpened, receiver.got[-1].json)


async def test_lost_deliveries_are_logged_as_failed_and_come_again_on_request(
    admin: Api, app: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    await drained()
    receiver.got.clear()
    await admin.post("/webhooks/rules", {"kind": "lose", "count": 2, "event": "issues"}, status=200)
    for title in ("one", "two", "three"):
        await _open(admin, repo, title)
    await drained()
    assert [one.json["issue"]["title"] for one in receiver.got] == ["three"]
    deliveries = await app.get("/app/hook/deliveries")
    failed = [row for row in deliveries if row["status"] != "OK"]
    assert await app.get("/app/hook/deliveries?status=failure") == failed
    assert [row["status_code"] for row in failed] == [0, 0]
    lost = failed[-1]
    assert await app.post(f"/app/hook/deliveries/{lost['id']}/attempts", status=202) == {}
    await drained()
    assert receiver.got[-1].headers["X-GitHub-Delivery"] == lost["guid"]
    assert receiver.got[-1].json["issue"]["title"] == "one"
    newest = (await app.get("/app/hook/deliveries"))[0]
    assert (newest["guid"], newest["redelivery"], newest["status"]) == (lost["guid"], True, "OK")
    attempts = [
        entry["attempt"]
        for entry in await admin.get("/journal")
        if entry["type"] == "delivery" and entry["guid"] == lost["guid"]
    ]
    assert attempts == [1, 2]


async def test_a_delivery_swallowed_unnoticed_is_logged_as_delivered(
    admin: Api, app: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    await drained()
    receiver.got.clear()
    await admin.post("/webhooks/rules", {"kind": "lose", "noticed": False}, status=200)
    await _open(admin, repo)
    await drained()
    assert receiver.got == []
    assert (await app.get("/app/hook/deliveries"))[0]["status"] == "OK"


async def test_repeated_deliveries_have_one_guid(
    admin: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    await drained()
    receiver.got.clear()
    await admin.post("/webhooks/rules", {"kind": "repeat", "times": 2}, status=200)
    await _open(admin, repo)
    await drained()
    assert receiver.kinds() == ["issues.opened"] * 3
    assert len({one.headers["X-GitHub-Delivery"] for one in receiver.got}) == 1


@pytest.mark.parametrize(("seed", "order"), [(None, ["3", "2", "1"]), (7, None)])
async def test_reordered_deliveries(
    admin: Api, repo: str, receiver: Receiver, drained: Drain, seed: int | None, order: Any
) -> None:
    await drained()
    receiver.got.clear()
    rule = {"kind": "reorder", "count": 3, "seed": seed}
    await admin.post("/webhooks/rules", rule, status=200)
    for title in ("1", "2", "3"):
        await _open(admin, repo, title)
    await drained()
    titles = [one.json["issue"]["title"] for one in receiver.got]
    assert titles == order if order else sorted(titles) == ["1", "2", "3"]


async def test_a_delayed_delivery_is_overtaken(
    admin: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    await drained()
    receiver.got.clear()
    await admin.post("/webhooks/rules", {"kind": "delay", "seconds": 0.2}, status=200)
    await _open(admin, repo)
    await admin.post(f"/repos/{repo}/issues/1/edit", {"title": "Later"}, status=200)
    await drained()
    assert receiver.kinds() == ["issues.edited", "issues.opened"]


async def test_a_receiver_that_fails_is_in_the_log(
    admin: Api, app: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    receiver.status = 503
    await _open(admin, repo)
    await drained()
    row = (await app.get("/app/hook/deliveries"))[0]
    assert (row["status"], row["status_code"]) == ("Invalid HTTP Response: 503", 503)
    full = await app.get(f"/app/hook/deliveries/{row['id']}")
    assert full["response"]["payload"] == "noted"


async def test_a_receiver_that_is_away_is_in_the_log(
    admin: Api, app: Api, repo: str, drained: Drain
) -> None:
    await admin.call("PUT", "/webhooks", {"urls": ["http://127.0.0.1:1/hook"]})
    await _open(admin, repo)
    await drained()
    assert (await app.get("/app/hook/deliveries"))[0]["status"] == "failed to connect to host"


async def test_any_event_goes_to_any_address(admin: Api, receiver: Receiver) -> None:
    body = {"url": receiver.url, "event": "ping", "payload": {"zen": "Keep it."}, "secret": "s"}
    sent = await admin.post("/webhooks/send", body, status=200)
    assert (sent["status"], sent["status_code"], sent["answer"]) == ("OK", 202, "noted")
    assert receiver.got[-1].headers["X-GitHub-Delivery"] == sent["guid"]
    digest = hmac.new(b"s", receiver.got[-1].body, hashlib.sha256).hexdigest()
    assert receiver.got[-1].headers["X-Hub-Signature-256"] == f"sha256={digest}"


async def test_several_receivers_take_turns(
    admin: Api, repo: str, receiver: Receiver, drained: Drain
) -> None:
    await drained()
    receiver.got.clear()
    urls = [receiver.url, receiver.url + "?replica=2"]
    await admin.call("PUT", "/webhooks", {"urls": urls})
    for _ in range(4):
        await _open(admin, repo)
    await drained()
    assert len(receiver.got) == 4


async def test_deliveries_are_paged_by_cursor(
    admin: Api, app: Api, repo: str, drained: Drain
) -> None:
    for _ in range(5):
        await _open(admin, repo)
    await drained()
    seen: list[int] = []
    url = "/app/hook/deliveries?per_page=2"
    while url:
        reply = await app.reply("GET", url)
        seen += [row["id"] for row in reply.json]
        link = reply.headers.get("link", "")
        url = link[1 : link.index(">")] if link else ""
    assert len(seen) == 6
    assert seen == sorted(seen, reverse=True)
