"""A GitHub simulator with one repository and one installation, and clients of ours at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import aiohttp

from issuesandbox.adapters.github.app import AppKey
from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.clock import SystemClock
from issuesandbox.local.github.server import GitHubConfig, GitHubSimulator

REPOSITORY = "acme/app"
TOKEN = "ghp_octocats_own"


class JumpingClock(SystemClock):
    """The real clock, with jumps."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


@dataclass
class Stage:
    sim: GitHubSimulator
    session: aiohttp.ClientSession
    clock: JumpingClock
    key: str
    installation: int = 0

    def connect(self, *, token: str | None = None, path: str = "", **more: Any) -> GitHubConnection:
        identity = PlainToken(token) if token else AppKey(str(self.sim.app_id), self.key)
        return GitHubConnection(self.sim.url + path, identity, self.clock, **more)

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        async with self.session.request(method, self.sim.admin_url + path, json=body) as response:
            answer = await response.json()
            assert response.status == 200, answer
            return answer

    async def post(self, path: str, **body: Any) -> Any:
        return await self.admin("POST", path, body)

    async def fault(self, kind: str, operation: str, **more: Any) -> None:
        await self.post("/faults", kind=kind, operation=operation, **more)

    async def issue(self, title: str = "Broken", **more: Any) -> int:
        made = await self.post(f"/repos/{REPOSITORY}/issues", title=title, **more)
        return int(made["number"])

    async def refs(self) -> dict[str, str]:
        found: dict[str, str] = await self.admin("GET", f"/repos/{REPOSITORY}/refs")
        return found

    async def requests(self, operation: str = "") -> list[dict[str, Any]]:
        """Return what was asked of GitHub, oldest first."""
        entries = await self.admin("GET", "/journal?since=0")
        asked = [each for each in entries if each["type"] == "request"]
        asked = [each for each in asked if each["identity"]["kind"] != "admin"]
        return [each for each in asked if operation in ("", each["operation"])]

    @property
    def git_url(self) -> str:
        return f"{self.sim.url}/{REPOSITORY}.git"


@asynccontextmanager
async def github_stage(key: str) -> AsyncIterator[Stage]:
    """Start it all, and end it."""
    clock = JumpingClock()
    config = GitHubConfig(tokens={TOKEN: "octocat"}, app_private_key=key)
    async with GitHubSimulator(config, clock) as sim, aiohttp.ClientSession() as session:
        stage = Stage(sim, session, clock, key)
        files = {"README.md": "hello\n", "src/app.py": "print(1)\n"}
        await stage.post("/repos", repository=REPOSITORY, files=files)
        stage.installation = (await stage.post("/installations", account="acme"))["id"]
        yield stage
