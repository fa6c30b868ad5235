"""Pull requests and refs behave as on GitHub, the refusals included."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from github_judge import Api


async def _push(admin: Api, repo: str, branch: str, **files: str) -> Any:
    return await admin.post(
        f"/repos/{repo}/push", {"branch": branch, "files": files or {branch: "1"}}, status=200
    )


async def _pull(root: Api, repo: str, head: str, **more: Any) -> Any:
    body = {"title": f"Merge {head}", "head": head, "base": "main", **more}
    return await root.post(f"/repos/{repo}/pulls", body)


async def test_a_second_pull_request_for_a_branch_is_refused(
    root: Api, admin: Api, repo: str
) -> None:
    await _push(admin, repo, "fix")
    first = await _pull(root, repo, "fix")
    body = {"title": "Again", "head": "acme:fix", "base": "main"}
    refused = await root.post(f"/repos/{repo}/pulls", body, status=422)
    assert refused["message"] == "Validation Failed"
    assert refused["errors"] == [
        {
            "resource": "PullRequest",
            "code": "custom",
            "message": "A pull request already exists for acme:fix.",
        }
    ]
    await root.call("PATCH", f"/repos/{repo}/pulls/{first['number']}", {"state": "closed"})
    assert (await root.post(f"/repos/{repo}/pulls", body))["number"] == 2


async def test_of_ten_pull_requests_at_once_one_is_made(root: Api, admin: Api, repo: str) -> None:
    await _push(admin, repo, "fix")
    body = {"title": "T", "head": "fix", "base": "main"}
    replies = await asyncio.gather(
        *(root.reply("POST", f"/repos/{repo}/pulls", body) for _ in range(10))
    )
    assert sorted(reply.status for reply in replies) == [201] + [422] * 9
    assert len(await root.get(f"/repos/{repo}/pulls?state=all")) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"head": "none"}, "head"),
        ({"base": "none"}, "base"),
        ({"head": "other:fix"}, "head"),
        ({"head": "a..b\u0000"}, "head"),
    ],
)
async def test_unknown_branches_are_refused(
    root: Api, admin: Api, repo: str, change: dict[str, str], field: str
) -> None:
    await _push(admin, repo, "fix")
    body = {"title": "T", "head": "fix", "base": "main", **change}
    refused = await root.post(f"/repos/{repo}/pulls", body, status=422)
    assert refused["errors"] == [{"resource": "PullRequest", "code": "invalid", "field": field}]


async def test_a_branch_without_commits_is_refused(root: Api, repo: str) -> None:
    main = (await root.get(f"/repos/{repo}/git/ref/heads/main"))["object"]["sha"]
    await root.post(f"/repos/{repo}/git/refs", {"ref": "refs/heads/same", "sha": main})
    body = {"title": "T", "head": "same", "base": "main"}
    refused = await root.post(f"/repos/{repo}/pulls", body, status=422)
    assert refused["errors"][0]["message"] == "No commits between main and same"


async def test_lists_are_filtered_by_head_base_and_state(root: Api, admin: Api, repo: str) -> None:
    for branch in ("a", "b"):
        await _push(admin, repo, branch)
        await _pull(root, repo, branch, draft=branch == "b")
    await root.call("PATCH", f"/repos/{repo}/pulls/1", {"state": "closed"})

    async def numbers(query: str) -> list[int]:
        return [pull["number"] for pull in await root.get(f"/repos/{repo}/pulls?{query}")]

    assert await numbers("") == [2]
    assert await numbers("state=all") == [2, 1]
    assert await numbers("state=all&head=acme:a") == [1]
    assert await numbers("head=acme:a") == []
    assert await numbers("head=other:b") == []
    assert await numbers("base=other") == []
    assert await numbers("state=all&direction=asc") == [1, 2]
    assert (await root.get(f"/repos/{repo}/pulls/2"))["draft"] is True
    await root.get(f"/repos/{repo}/pulls?state=odd", status=422)


async def test_a_pull_request_is_an_issue_too(root: Api, admin: Api, repo: str) -> None:
    await _push(admin, repo, "fix")
    pull = await _pull(root, repo, "fix")
    issue = await root.get(f"/repos/{repo}/issues/1")
    assert issue["pull_request"]["url"] == pull["url"]
    assert issue["id"] != pull["id"]
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    await root.get(f"/repos/{repo}/pulls/2", status=404)


@pytest.mark.parametrize(("method", "parents"), [("merge", 2), ("squash", 1)])
async def test_merging_moves_the_base_and_closes_what_the_text_names(
    root: Api, admin: Api, repo: str, method: str, parents: int
) -> None:
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    await _push(admin, repo, "fix")
    await _push(admin, repo, "main", other="1")
    pull = await _pull(root, repo, "fix", body="Closes #1")
    path = f"/repos/{repo}/pulls/{pull['number']}"
    await root.call("GET", f"{path}/merge", status=404)
    refused = await root.call("PUT", f"{path}/merge", {"sha": "0" * 40}, status=409)
    assert refused["message"].startswith("Head branch was modified")
    merged = await root.call(
        "PUT", f"{path}/merge", {"sha": pull["head"]["sha"], "merge_method": method}
    )
    await root.call("GET", f"{path}/merge", status=204)
    tip = await root.get(f"/repos/{repo}/commits/main")
    assert tip["sha"] == merged["sha"]
    assert len(tip["parents"]) == parents
    shown = await root.get(path)
    assert (shown["state"], shown["merged"], shown["merged_by"]["login"]) == (
        *("closed", True),
        "root",
    )
    assert (await root.get(f"/repos/{repo}/issues/1"))["state"] == "closed"
    await root.call("PUT", f"{path}/merge", status=405)
    await root.call("PATCH", path, {"state": "open"}, status=422)


async def test_a_conflict_cannot_be_merged(root: Api, admin: Api, repo: str) -> None:
    await _push(admin, repo, "fix", same="theirs\n")
    await _push(admin, repo, "main", same="ours\n")
    await _pull(root, repo, "fix")
    shown = await root.get(f"/repos/{repo}/pulls/1")
    assert (shown["mergeable"], shown["mergeable_state"]) == (False, "dirty")
    refused = await root.call("PUT", f"/repos/{repo}/pulls/1/merge", status=405)
    assert refused["message"] == "Pull Request is not mergeable"


async def test_deleting_the_branch_closes_the_pull_request(
    root: Api, admin: Api, repo: str
) -> None:
    await _push(admin, repo, "fix")
    await _pull(root, repo, "fix")
    await root.call("DELETE", f"/repos/{repo}/git/refs/heads/fix", status=204)
    assert (await root.get(f"/repos/{repo}/pulls/1"))["state"] == "closed"


async def test_refs_are_made_moved_and_deleted(root: Api, admin: Api, repo: str) -> None:
    refs = f"/repos/{repo}/git/refs"
    first = (await root.get(f"/repos/{repo}/git/ref/heads/main"))["object"]["sha"]
    second = (await _push(admin, repo, "main"))["new"]
    new = {"ref": "refs/heads/deep/branch", "sha": first}
    await root.post(refs, new)
    assert (await root.post(refs, new, status=422))["message"] == "Reference already exists"
    path = f"{refs}/heads/deep/branch"
    moved = await root.call("PATCH", path, {"sha": second})
    assert moved["object"]["sha"] == second
    refused = await root.call("PATCH", path, {"sha": first}, status=422)
    assert refused["message"] == "Update is not a fast forward"
    await root.call("PATCH", path, {"sha": first, "force": True})
    await root.call("DELETE", path, status=204)
    refused = await root.call("DELETE", path, status=422)
    assert refused["message"] == "Reference does not exist"
    await root.get(f"/repos/{repo}/git/ref/heads/deep/branch", status=404)
    via_rest = [
        e for e in await admin.get("/journal") if e["type"] == "push" and e["via"] == "rest"
    ]
    assert [entry["new"] for entry in via_rest] == [first, second, first, "0" * 40]


async def test_a_part_of_a_ref_is_no_ref(root: Api, admin: Api, repo: str) -> None:
    await _push(admin, repo, "feature/a")
    await root.get(f"/repos/{repo}/git/ref/heads/feature", status=404)
    await root.get(f"/repos/{repo}/git/ref/heads/*", status=404)
    listed = await root.get(f"/repos/{repo}/git/matching-refs/heads/feat")
    assert [ref["ref"] for ref in listed] == ["refs/heads/feature/a"]


_BAD_REFS: list[Any] = [
    {"ref": "main", "sha": "0" * 40},
    {"ref": "refs/heads/x\u0000delete refs/heads/main", "sha": "0" * 40},
    {"ref": "refs/heads/x y", "sha": "0" * 40},
    {"ref": "refs/heads/x", "sha": "f" * 40},
    {"ref": "refs/heads/x", "sha": "--help"},
    {"ref": "refs/heads/x"},
    {"ref": 5, "sha": "0" * 40},
]


async def test_bad_refs_are_refused(subtests: pytest.Subtests, root: Api, repo: str) -> None:
    for body in _BAD_REFS:
        with subtests.test(body=body):
            await root.post(f"/repos/{repo}/git/refs", body, status=422)


async def test_protected_branches_do_not_move_by_rest(root: Api, admin: Api, repo: str) -> None:
    await admin.call("PUT", f"/repos/{repo}/protection/main")
    new = (await _push(admin, repo, "fix"))["new"]
    path = f"/repos/{repo}/git/refs/heads/main"
    await root.call("PATCH", path, {"sha": new}, status=422)
    await root.call("DELETE", path, status=422)
    assert (await root.get(f"/repos/{repo}/branches/main"))["protected"] is True


async def test_an_empty_repository_has_no_branches(root: Api, admin: Api) -> None:
    await admin.post("/repos", {"repository": "acme/empty"}, status=200)
    assert await root.get("/repos/acme/empty/branches") == []
    await root.get("/repos/acme/empty/branches/main", status=404)
    await root.get("/repos/acme/empty/commits/main", status=422)
    assert (await root.get("/repos/acme/empty"))["default_branch"] == "main"
