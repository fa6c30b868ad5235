"""A stage for the webhook adapter: a simulated GitHub, a namespace, real adapter processes."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import aiohttp
import pytest
from adapter_process import SECRET, Adapters

from issuesandbox.clock import SystemClock
from issuesandbox.local.checker.guard import Guard
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.processes import Child

REPOSITORY = "acme/app"


class JumpingClock(SystemClock):
    """The real clock, with jumps."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    def tick(self) -> None:
        """Go on by a second: GitHub's times have no more."""
        self.ahead += timedelta(seconds=1)


@dataclass
class WebhookStage:
    """Everything a test of the adapter touches."""

    clock: JumpingClock
    adapters: Adapters
    http: aiohttp.ClientSession
    guard: Guard
    """What the test tells the checker that judges it at its end."""

    @property
    def access(self) -> Access:
        return self.adapters.access

    @property
    def namespace(self) -> str:
        return self.adapters.namespace

    @property
    def urls(self) -> list[str]:
        return self.adapters.urls

    async def start(self, count: int = 1, **settings: str) -> None:
        """Start adapters and let GitHub deliver to all of them in turn."""
        for _ in range(count):
            self.adapters.spawn(**settings)
        for url, child in zip(self.urls, self.adapters.children, strict=True):
            await self.until(partial(self._ready, url, child), "readiness")
        await self.deliver_to(*self.urls)

    async def deliver_to(self, *urls: str) -> None:
        hooks = [f"{url}/webhook" for url in urls]
        await self.sim("PUT", "webhooks", {"urls": hooks, "secret": SECRET})

    async def set_policy(self, text: str) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        name = "issuesandbox-webhook-policy"
        body = {"metadata": {"name": name}, "data": {"policy.yaml": text}}
        if await self.api("GET", f"{path}/{name}", missing={}):
            await self.api("PATCH", f"{path}/{name}", {"data": body["data"]})
        else:
            await self.api("POST", path, body)

    async def _ready(self, url: str, child: Child) -> bool:
        assert child.returncode is None, f"the adapter ended: {child.last_lines(20)}"
        try:
            async with self.http.get(f"{url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def issue(self, title: str = "It breaks", login: str = "owner", **issue: Any) -> int:
        """Open an issue and return its number."""
        body = {"title": title, "as": login, **issue}
        made = await self.sim("POST", f"repos/{REPOSITORY}/issues", body)
        return int(made["number"])

    async def act(self, number: int, verb: str, login: str = "owner", **body: Any) -> Any:
        """Let somebody do something with an issue."""
        path = f"repos/{REPOSITORY}/issues/{number}/{verb}"
        return await self.sim("POST", path, {"as": login, **body})

    async def say(self, number: int, text: str, login: str = "owner") -> int:
        """Let somebody comment; return the comment's id."""
        return int((await self.act(number, "comment", login, body=text))["id"])

    async def drained(self) -> None:
        """Wait until every delivery was answered."""
        await self.sim("POST", "webhooks/drain")

    async def resources(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.api("GET", self.path()))["items"]
        return found

    async def let_go(self) -> None:
        """Do what an operator does at the end of what is being deleted; none runs here."""
        for each in await self.resources():
            if "deletionTimestamp" in each["metadata"]:
                path = f"{self.path()}/{each['metadata']['name']}"
                await self.api("PATCH", path, {"metadata": {"finalizers": []}})

    async def resource(self, number: int) -> dict[str, Any]:
        """Return the only resource of an issue, or an empty object."""
        same = [
            each for each in await self.resources() if each["spec"]["issue"]["number"] == number
        ]
        assert len(same) <= 1, [each["metadata"]["name"] for each in same]
        return same[0] if same else {}

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """Yield every version of every resource from now on."""
        trust = ssl.create_default_context(cafile=self.access.ca)
        headers = {"Authorization": f"Bearer {self.access.token}"}
        url = f"{self.access.server}{self.path()}?watch=true"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.http.get(url, headers=headers, ssl=trust, timeout=timeout) as answer:
            async for line in answer.content:
                yield json.loads(line)["object"]

    async def passes(self) -> int:
        """Return how many whole catch-up passes the last adapter took."""
        log = self.adapters.folder / "logs" / f"webhook-{len(self.urls) - 1}.log"
        return log.read_text().count("catch-up done")

    async def reactions(self, comment: int) -> set[str]:
        listed = await self.journal()
        return {
            effect["content"]
            for entry in listed
            for effect in entry.get("effect") or ()
            if effect["what"] == "reaction.created" and effect["subject"] == comment
        }

    async def comments(self, number: int) -> list[dict[str, Any]]:
        """Return the comments under an issue."""
        token = await self.sim("POST", "tokens", {"user": "root"})
        url = f"{self.adapters.github.url}/repos/{REPOSITORY}/issues/{number}/comments?per_page=100"
        headers = {"Authorization": f"Bearer {token['token']}"}
        async with self.http.get(url, headers=headers) as answer:
            found: list[dict[str, Any]] = await answer.json()
            assert answer.status == 200, found
            return found

    async def journal(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.sim("GET", "journal")
        return found

    async def deliveries(self) -> list[dict[str, Any]]:
        return [each for each in await self.journal() if each["type"] == "delivery"]

    async def until(
        self, condition: Callable[[], Awaitable[Any]], what: str, seconds: float = 20
    ) -> Any:
        """Wait for a condition; on failure say what the adapters logged last."""
        try:
            async with asyncio.timeout(seconds):
                while not (value := await condition()):
                    await asyncio.sleep(0.05)
                return value
        except TimeoutError:
            logs = "\n".join(
                line for each in self.adapters.children for line in each.last_lines(15)
            )
            pytest.fail(f"waited {seconds} s for {what}\n{logs}", pytrace=False)

    def path(self, name: str = "") -> str:
        base = f"/apis/issuesandbox.dev/v1alpha1/namespaces/{self.namespace}/issuesandboxes"
        return f"{base}/{name}" if name else base

    async def api(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        missing: Any = None,
        manager: str = "kubectl",
    ) -> Any:
        """Send a request to the API server as the administrator."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.access.token}", "Content-Type": kind}
        data = json.dumps(body) if body is not None else None
        trust = ssl.create_default_context(cafile=self.access.ca)
        url = f"{self.access.server}{path}"
        query = {"fieldManager": manager} if body is not None else None
        async with self.http.request(
            method, url, data=data, headers=headers, ssl=trust, params=query
        ) as answer:
            if answer.status == 404 and missing is not None:
                return missing
            text = await answer.text()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return json.loads(text)

    async def sim(self, method: str, path: str, body: Any = None) -> Any:
        """Call the GitHub simulator's admin API."""
        url = f"{self.adapters.github.admin_url}/{path}"
        async with self.http.request(method, url, json=body) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return json.loads(text) if text else None
