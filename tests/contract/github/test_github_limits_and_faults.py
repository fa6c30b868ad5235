"""Validators, budgets and every fault, before and after the effect."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from github_judge import Api, JumpingClock


async def _fault(admin: Api, **body: Any) -> None:
    await admin.post("/faults", body, status=200)


async def test_an_unchanged_answer_is_304_and_free(root: Api, repo: str) -> None:
    path = f"/repos/{repo}/issues"
    first = await root.reply("GET", path)
    tag, remaining = first.headers["etag"], int(first.headers["x-ratelimit-remaining"])
    for held in (tag, tag.removeprefix("W/"), f'"other", {tag}'):
        same = await root.reply("GET", path, headers={"If-None-Match": held})
        assert (same.status, same.json) == (304, None)
        assert int(same.headers["x-ratelimit-remaining"]) == remaining
    await root.post(path, {"title": "Bug"})
    changed = await root.reply("GET", path, headers={"If-None-Match": tag})
    assert changed.status == 200
    assert int(changed.headers["x-ratelimit-remaining"]) == remaining - 2


async def test_every_answer_tells_the_budget(root: Api, repo: str) -> None:
    headers = (await root.reply("GET", f"/repos/{repo}")).headers
    assert headers["x-ratelimit-limit"] == "5000"
    assert int(headers["x-ratelimit-used"]) + int(headers["x-ratelimit-remaining"]) == 5000
    assert headers["x-ratelimit-resource"] == "core"
    free = await root.get("/rate_limit")
    assert await root.get("/rate_limit") == free


async def test_a_used_up_budget_refuses_until_the_reset(
    root: Api, admin: Api, repo: str, clock: JumpingClock
) -> None:
    await admin.call("PUT", "/rate", {"limit": 2})
    for _ in range(2):
        await root.get(f"/repos/{repo}")
    refused = await root.reply("GET", f"/repos/{repo}")
    assert refused.status == 403
    assert refused.json["message"].startswith("API rate limit exceeded for user ID")
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert int(refused.headers["x-ratelimit-reset"]) > clock.now().timestamp()
    clock.ahead += timedelta(hours=1, seconds=1)
    await root.get(f"/repos/{repo}")


async def test_a_secondary_rate_limit_names_the_wait(root: Api, admin: Api, repo: str) -> None:
    await _fault(admin, kind="secondary-rate-limit", seconds=7, operation="issues/create-comment")
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    path = f"/repos/{repo}/issues/1/comments"
    refused = await root.reply("POST", path, {"body": "x"})
    assert refused.status == 403
    assert refused.headers["retry-after"] == "7"
    assert "secondary rate limit" in refused.json["message"]
    assert int(refused.headers["x-ratelimit-remaining"]) > 0
    await root.post(path, {"body": "x"})


async def test_a_status_before_the_effect(
    subtests: pytest.Subtests, root: Api, admin: Api, repo: str
) -> None:
    for status in (403, 404, 409, 422, 500, 502, 503):
        with subtests.test(status=status):
            await _fault(admin, kind="status", status=status, method="POST")
            refused = await root.post(f"/repos/{repo}/issues", {"title": "Bug"}, status=status)
            assert refused["message"]
            assert refused["status"] == str(status)
            assert await root.get(f"/repos/{repo}/issues") == []
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})


@pytest.mark.parametrize("kind", ["status", "reset"])
async def test_a_lost_answer_after_the_effect(root: Api, admin: Api, repo: str, kind: str) -> None:
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    path = f"/repos/{repo}/issues/1/comments"
    await _fault(admin, kind=kind, operation="issues/create-comment", after_effect=True, status=502)
    if kind == "status":
        await root.post(path, {"body": "once"}, status=502)
    else:
        with pytest.raises(aiohttp.ClientError):
            await root.post(path, {"body": "once"})
    assert [row["body"] for row in await root.get(path)] == ["once"]
    entry = next(
        entry
        for entry in await admin.get("/journal")
        if entry.get("operation") == "issues/create-comment"
    )
    assert entry["effect"][0]["what"] == "issue_comment.created"
    assert entry["fault"].endswith("after effect")


async def test_a_reset_before_the_effect(root: Api, admin: Api, repo: str) -> None:
    await _fault(admin, kind="reset", operation="issues/create")
    with pytest.raises(aiohttp.ClientError):
        await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    assert await root.get(f"/repos/{repo}/issues") == []


@pytest.mark.parametrize("after_effect", [False, True])
async def test_a_slow_answer(
    root: Api, admin: Api, repo: str, clock: JumpingClock, after_effect: bool
) -> None:
    await _fault(admin, kind="slow", seconds=0.2, operation="repos/get", after_effect=after_effect)
    started = clock.monotonic()
    await root.get(f"/repos/{repo}")
    assert clock.monotonic() - started >= 0.2


async def test_faults_skip_count_and_end(root: Api, admin: Api, repo: str) -> None:
    await _fault(admin, kind="status", status=500, path=f"/repos/{repo}", skip=1, count=2)
    statuses = [(await root.reply("GET", f"/repos/{repo}")).status for _ in range(4)]
    assert statuses == [200, 500, 500, 200]
    assert await admin.get("/faults") == []
    await _fault(admin, kind="status", status=500, operation="repos/get", count=None)
    statuses = [(await root.reply("GET", f"/repos/{repo}")).status for _ in range(3)]
    assert statuses == [500, 500, 500]
    await admin.call("DELETE", "/faults")
    await root.get(f"/repos/{repo}")


async def test_a_fault_can_be_a_matter_of_luck(root: Api, admin: Api, repo: str) -> None:
    await _fault(admin, kind="status", status=500, probability=0.5, count=None)
    statuses = {(await root.reply("GET", f"/repos/{repo}")).status for _ in range(40)}
    assert statuses == {200, 500}


async def test_the_journal_has_everything_in_order(root: Api, admin: Api, repo: str) -> None:
    before = (await admin.get("/journal"))[-1]["seq"]
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    await root.get(f"/repos/{repo}/missing", status=404)
    entries = [
        entry for entry in await admin.get(f"/journal?since={before}") if entry["type"] == "request"
    ]
    assert [entry["seq"] for entry in entries] == sorted(entry["seq"] for entry in entries)
    opened, missing = entries
    assert (opened["method"], opened["path"], opened["status"]) == (
        *("POST", f"/repos/{repo}/issues"),
        201,
    )
    assert opened["identity"]["login"] == "root"
    assert opened["at"] <= opened["done_at"]
    (effect,) = opened["effect"]
    assert (effect["what"], effect["repository"], effect["number"]) == ("issues.opened", repo, 1)
    assert (missing["operation"], missing["status"], missing["effect"]) == ("unknown", 404, [])
