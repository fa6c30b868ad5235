"""Who follows a link to an issue or a pull request sees it."""

from __future__ import annotations

import aiohttp
from github_judge import Api

from issuesandbox.local.github.server import GitHubSimulator


async def test_a_link_shows_the_issue_and_its_comments(
    root: Api, admin: Api, repo: str, session: aiohttp.ClientSession
) -> None:
    issue = await root.post(f"/repos/{repo}/issues", {"title": "Bug", "body": "It *fails*."})
    await admin.post(
        f"/repos/{repo}/issues/1/comment", {"body": "Me too.", "as": "mona"}, status=200
    )
    async with session.get(issue["html_url"]) as page:
        text = await page.text()
    assert text.startswith("acme/app#1 Bug (open)\n")
    assert "\nIt *fails*.\n" in text
    assert "\nmona, " in text
    assert text.endswith("\nMe too.\n")


async def test_a_link_shows_the_pull_request_and_what_it_changes(
    root: Api, admin: Api, repo: str, session: aiohttp.ClientSession
) -> None:
    push = {"branch": "fix", "files": {"src/app.py": "print(2)\n"}}
    await admin.post(f"/repos/{repo}/push", push, status=200)
    pull = await root.post(f"/repos/{repo}/pulls", {"title": "F", "head": "fix", "base": "main"})
    async with session.get(pull["html_url"]) as page:
        text = await page.text()
    assert text.startswith("acme/app#1 F (open)\n")
    assert "\nfix into main\n" in text
    assert "\n-print(1)\n+print(2)\n" in text
    await root.call("PUT", f"/repos/{repo}/pulls/1/merge", {})
    async with session.get(pull["html_url"]) as page:
        assert (await page.text()).startswith("acme/app#1 F (merged)\n")


async def test_what_is_not_there_is_not_found(
    sim: GitHubSimulator, repo: str, session: aiohttp.ClientSession
) -> None:
    for path in (f"/{repo}/issues/9", f"/{repo}/pull/9", "/nobody/nothing/issues/1"):
        async with session.get(f"{sim.url}{path}") as page:
            assert page.status == 404, path
