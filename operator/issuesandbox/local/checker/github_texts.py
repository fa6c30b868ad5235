"""What stands on GitHub at the end, as texts: comments, pull requests and the pushed commits.

Reads as the owners of the repositories; knows how the simulated GitHub is asked, and no rule.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from issuesandbox.local.checker.asking import Asking, CollectError
from issuesandbox.local.checker.evidence import Comment
from issuesandbox.local.checker.journals import Push

# A run makes one commit; so many runs on one branch are looked at.
_DEPTH = 10


@dataclass(frozen=True)
class GitHubTexts:
    """Asks one simulated GitHub."""

    asking: Asking
    github: str

    async def journal(self) -> list[dict[str, Any]]:
        """Return the whole journal."""
        entries: list[dict[str, Any]] = []
        while True:
            since = {"since": str(entries[-1]["seq"] if entries else 0)}
            page = await self.asking.json(f"{self.github}/_sim/journal", params=since)
            if not page:
                return entries
            entries += page

    async def comments(self, repositories: Collection[str]) -> list[Comment]:
        """Return every comment in these repositories."""
        return [
            _comment(repository, each)
            for repository in sorted(repositories)
            async for each in self._pages(repository, "issues/comments")
        ]

    async def pull_requests(self, repositories: Collection[str]) -> str:
        """Return titles and descriptions of all pull requests in these repositories."""
        found = [
            f"{repository}#{each['number']}\n{each['title']}\n{each['body'] or ''}"
            for repository in sorted(repositories)
            async for each in self._pages(repository, "pulls", state="all")
        ]
        return "\n".join(found)

    async def commits(self, pushes: Collection[Push]) -> str:
        """Return the pushed commits with all they changed, as git shows them."""
        found = []
        for repository in sorted({push.repository for push in pushes}):
            token = await self._token(repository)
            shown = f"{self.github}/repos/{repository}"
            if await self.asking.text(shown, missing="", headers=_bearer(token)):
                ids = {push.new for push in pushes if push.repository == repository}
                scheme, _, place = self.github.partition("://")
                url = f"{scheme}://x:{token}@{place}/{repository}.git"
                found.append(await asyncio.to_thread(_shown_by_git, url, ids))
        return "\n".join(found)

    async def _pages(
        self, repository: str, what: str, **query: str
    ) -> AsyncIterator[Mapping[str, Any]]:
        headers = _bearer(await self._token(repository))
        url = f"{self.github}/repos/{repository}/{what}"
        for page in range(1, 1000):
            params = {"per_page": "100", "page": str(page), **query}
            # A resource may name a repository that does not exist.
            answer = await self.asking.json(url, missing="[]", headers=headers, params=params)
            for each in answer:
                yield each
            if len(answer) < 100:
                return

    async def _token(self, repository: str) -> str:
        owner = {"user": repository.partition("/")[0]}
        return str((await self.asking.json(f"{self.github}/_sim/tokens", json=owner))["token"])


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _comment(repository: str, shown: Mapping[str, Any]) -> Comment:
    number = int(shown["issue_url"].rsplit("/", 1)[1])
    return Comment(repository.lower(), number, shown["id"], shown["body"])


def _shown_by_git(url: str, ids: Collection[str]) -> str:
    with TemporaryDirectory(prefix="issuesandbox-checker-") as folder:
        tips = ("--bare", "--depth", str(_DEPTH), "--no-single-branch")
        _git("clone", "--quiet", *tips, url, folder)
        # What was pushed may have been deleted or overwritten since.
        options = ("--ignore-missing", "--no-walk", "--patch", "--text", "--format=fuller")
        return _git("-C", folder, "log", *options, *sorted(ids))


def _git(*arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *arguments],
        capture_output=True,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise CollectError(f"git did not show what was pushed: {json.dumps(done.stderr.decode())}")
    return done.stdout.decode(errors="replace")
