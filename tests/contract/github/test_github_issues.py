"""Issues, comments, reactions and labels behave as on GitHub."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from github_judge import Api, JumpingClock


async def _open(root: Api, repo: str, title: str = "Bug", **more: Any) -> Any:
    return await root.post(f"/repos/{repo}/issues", {"title": title, **more})


async def test_global_ids_never_equal_numbers(root: Api, repo: str) -> None:
    ids = []
    for expected in range(1, 6):
        issue = await _open(root, repo)
        assert issue["number"] == expected
        comment = await root.post(f"/repos/{repo}/issues/{expected}/comments", {"body": "x"})
        ids += [issue["id"], comment["id"], issue["user"]["id"]]
        assert issue["node_id"] != comment["node_id"]
    assert min(ids) > 1_000_000_000
    assert all(ident % 2 == 1 for ident in ids)


async def test_a_hundred_issues_are_paged_in_order(root: Api, repo: str) -> None:
    for index in range(100):
        await _open(root, repo, f"Issue {index}")
    seen: list[int] = []
    url, pages = f"/repos/{repo}/issues?per_page=30&direction=asc", 0
    while url:
        reply = await root.reply("GET", url)
        seen += [issue["number"] for issue in reply.json]
        links = dict(
            reversed(part.strip().split("; rel=")) for part in reply.headers["link"].split(",")
        )
        url, pages = links.get('"next"', "").strip("<>"), pages + 1
    assert seen == list(range(1, 101))
    assert pages == 4
    full = await root.get(f"/repos/{repo}/issues?per_page=1000")
    assert [issue["number"] for issue in full] == list(range(100, 0, -1))


async def test_pages_beyond_the_end_are_empty_and_bad_ones_are_the_first(
    root: Api, repo: str
) -> None:
    await _open(root, repo)
    assert await root.get(f"/repos/{repo}/issues?page=7") == []
    for page in ("0", "-1", "x"):
        assert len(await root.get(f"/repos/{repo}/issues?page={page}&per_page={page}")) == 1


async def test_lists_are_filtered(root: Api, repo: str, clock: JumpingClock) -> None:
    await _open(root, repo, "old", labels=["agent", "bug"])
    clock.ahead += timedelta(seconds=10)
    second = await _open(root, repo, "new", assignees=["root"])
    await root.call("PATCH", f"/repos/{repo}/issues/1", {"state": "closed"})

    async def numbers(query: str) -> list[int]:
        return [issue["number"] for issue in await root.get(f"/repos/{repo}/issues?{query}")]

    assert await numbers("") == [2]
    assert await numbers("state=closed") == [1]
    assert await numbers("state=all") == [2, 1]
    assert await numbers("state=all&labels=Agent,bug") == [1]
    assert await numbers("state=all&labels=agent,other") == []
    assert await numbers("state=all&assignee=root") == [2]
    assert await numbers("state=all&assignee=none") == [1]
    assert await numbers("state=all&creator=nobody") == []
    assert await numbers("state=all&sort=updated&direction=asc") == [1, 2]
    clock.ahead += timedelta(seconds=10)
    await root.post(f"/repos/{repo}/issues/1/comments", {"body": "a comment updates the issue"})
    assert await numbers(f"state=all&since={second['updated_at']}") == [2, 1]
    assert await numbers("state=all&sort=updated") == [1, 2]
    later = (await root.get(f"/repos/{repo}/issues/1"))["updated_at"]
    assert await numbers(f"state=all&since={later}") == [1]
    await root.get(f"/repos/{repo}/issues?since=yesterday", status=422)


async def test_closing_and_reopening_leaves_a_history(root: Api, repo: str) -> None:
    await _open(root, repo)
    path = f"/repos/{repo}/issues/1"
    closed = await root.call("PATCH", path, {"state": "closed", "state_reason": "not_planned"})
    assert (closed["state"], closed["state_reason"]) == ("closed", "not_planned")
    assert closed["closed_by"]["login"] == "root"
    assert closed["closed_at"]
    opened = await root.call("PATCH", path, {"state": "open"})
    assert (opened["state"], opened["state_reason"], opened["closed_at"]) == (
        *("open", "reopened"),
        None,
    )
    events = await root.get(f"{path}/events")
    assert [event["event"] for event in events] == ["closed", "reopened"]
    assert events[0]["id"] != events[1]["id"]


async def test_labels_are_made_on_the_fly_and_matched_whatever_the_case(
    root: Api, repo: str
) -> None:
    await _open(root, repo, labels=["Agent"])
    path = f"/repos/{repo}/issues/1/labels"

    def names(labels: Any) -> list[str]:
        return [label["name"] for label in labels]

    assert names(await root.post(path, ["agent", "x"], status=200)) == ["Agent", "x"]
    assert names(await root.call("DELETE", f"{path}/AGENT")) == ["x"]
    refused = await root.call("DELETE", f"{path}/agent", status=404)
    assert refused["message"] == "Label does not exist"
    assert names(await root.call("PUT", path, {"labels": [{"name": "y"}]})) == ["y"]
    await root.call("DELETE", f"/repos/{repo}/labels/y", status=204)
    assert await root.get(path) == []
    await root.post(f"/repos/{repo}/labels", {"name": "x"}, status=422)


async def test_assignees_come_and_go(root: Api, admin: Api, repo: str) -> None:
    await admin.call("PUT", "/users/mia", {})
    await _open(root, repo)
    path = f"/repos/{repo}/issues/1/assignees"
    both = await root.post(path, {"assignees": ["mia", "root"]})
    assert [user["login"] for user in both["assignees"]] == ["mia", "root"]
    one = await root.call("DELETE", path, {"assignees": ["MIA"]})
    assert one["assignee"]["login"] == "root"
    await root.post(path, {"assignees": ["ghost"]}, status=422)


async def test_a_locked_conversation_takes_comments_of_writers_only(
    root: Api, admin: Api, repo: str
) -> None:
    await _open(root, repo)
    path = f"/repos/{repo}/issues/1"
    await root.call("PUT", f"{path}/lock", {"lock_reason": "too heated"}, status=204)
    shown = await root.get(path)
    assert (shown["locked"], shown["active_lock_reason"]) == (True, "too heated")
    body = {"body": "let me in", "as": "sam"}
    refused = await admin.post(f"/repos/{repo}/issues/1/comment", body, status=403)
    assert refused["message"] == "Unable to create comment because issue is locked."
    await root.post(f"{path}/comments", {"body": "fine"})
    await root.call("DELETE", f"{path}/lock", status=204)
    await admin.post(f"/repos/{repo}/issues/1/comment", body, status=200)


async def test_comments_are_changed_listed_and_deleted(
    root: Api, repo: str, clock: JumpingClock
) -> None:
    await _open(root, repo)
    path = f"/repos/{repo}/issues/1/comments"
    first, second = [await root.post(path, {"body": text}) for text in ("one", "two")]
    clock.ahead += timedelta(seconds=5)
    own = f"/repos/{repo}/issues/comments/{first['id']}"
    changed = await root.call("PATCH", own, {"body": "uno"})
    assert changed["updated_at"] > changed["created_at"]
    assert [row["body"] for row in await root.get(path)] == ["uno", "two"]
    since = changed["updated_at"]
    assert [row["body"] for row in await root.get(f"{path}?since={since}")] == ["uno"]
    order = "sort=updated&direction=desc"
    everywhere = await root.get(f"/repos/{repo}/issues/comments?{order}")
    assert [row["id"] for row in everywhere] == [first["id"], second["id"]]
    assert (await root.get(f"/repos/{repo}/issues/1"))["comments"] == 2
    await root.call("DELETE", own, status=204)
    await root.get(own, status=404)
    await root.call("DELETE", own, status=404)


async def test_reactions_are_given_once(root: Api, admin: Api, repo: str) -> None:
    await _open(root, repo)
    path = f"/repos/{repo}/issues/1/reactions"
    first = await root.post(path, {"content": "eyes"}, status=201)
    assert (await root.post(path, {"content": "eyes"}, status=200))["id"] == first["id"]
    await root.post(path, {"content": "rocket"}, status=201)
    await root.post(path, {"content": "cake"}, status=422)
    assert len(await root.get(path)) == 2
    assert len(await root.get(f"{path}?content=rocket")) == 1
    await root.call("DELETE", f"{path}/{first['id']}", status=204)
    assert (await root.get(f"/repos/{repo}/issues/1"))["reactions"]["total_count"] == 1


async def test_a_deleted_issue_is_gone_and_its_number_stays_used(
    root: Api, admin: Api, repo: str
) -> None:
    await _open(root, repo)
    await admin.post(f"/repos/{repo}/issues/1/delete", status=200)
    gone = await root.get(f"/repos/{repo}/issues/1", status=410)
    assert gone["message"] == "This issue was deleted"
    assert await root.get(f"/repos/{repo}/issues?state=all") == []
    assert (await _open(root, repo))["number"] == 2


@pytest.mark.parametrize("prefix", ["", "/api/v3"])
async def test_a_transferred_issue_redirects(root: Api, admin: Api, repo: str, prefix: str) -> None:
    await admin.post("/repos", {"repository": "acme/next"}, status=200)
    old = await _open(root, repo, body="text")
    await root.post(f"/repos/{repo}/issues/1/comments", {"body": "goes along"})
    moved = await admin.post(f"/repos/{repo}/issues/1/transfer", {"to": "acme/next"}, status=200)
    assert moved["id"] != old["id"]
    reply = await root.reply("GET", f"{prefix}/repos/{repo}/issues/1")
    assert reply.status == 301
    there = await root.get(reply.headers["location"])
    assert (there["number"], there["body"], there["comments"]) == (1, "text", 1)
    assert there["url"] == f"{root.base}{prefix}/repos/acme/next/issues/1"


async def test_the_enterprise_address_answers_with_its_own_links(root: Api, repo: str) -> None:
    for _ in range(2):
        await _open(root, repo)
    reply = await root.reply("GET", f"/api/v3/repos/{repo}/issues?per_page=1")
    base = f"{root.base}/api/v3/repos/{repo}"
    assert reply.json[0]["url"] == f"{base}/issues/2"
    assert f'<{base}/issues?per_page=1&page=2>; rel="next"' in reply.headers["link"]
