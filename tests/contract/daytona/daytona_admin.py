"""The administrator's hand in a simulated Daytona, and who may knock at its door."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import psutil
from daytona import AsyncDaytona, DaytonaConfig

ORGANIZATION = "acme"
KEY = "acme-key-value"
OTHER_ORGANIZATION = "globex"
OTHER_KEY = "globex-key-value"
READ_ONLY_KEY = "reader-key-value"


class Admin:
    """The administrator's API as Python calls."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        async with self._session.request(method, f"{self.url}{path}", json=body) as response:
            text = await response.text()
            assert response.status < 400, text
            return json.loads(text) if text else None

    async def fault(self, fault: str, kind: str = "*", **more: Any) -> str:
        created = await self.call("POST", "/faults", {"fault": fault, "kind": kind, **more})
        return str(created["id"])

    async def clear(self) -> None:
        await self.call("DELETE", "/faults")

    async def advance(self, seconds: float) -> None:
        await self.call("POST", "/advance", {"seconds": seconds})

    async def plant(self, **more: Any) -> list[dict[str, str]]:
        planted = {"organization": ORGANIZATION, **more}
        found: list[dict[str, str]] = await self.call("POST", "/sandboxes", planted)
        return found

    async def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.call("GET", "/sandboxes")
        return found

    async def commands(self, sandbox: str) -> list[str]:
        """Return the command lines that run in a sandbox."""
        pids = (await self.call("GET", "/processes")).get(sandbox, [])
        return [" ".join(psutil.Process(pid).cmdline()) for pid in pids]

    async def journal(self, **wanted: Any) -> list[dict[str, Any]]:
        async with self._session.get(f"{self.url}/journal") as response:
            entries = [json.loads(line) for line in (await response.text()).splitlines()]
        return [entry for entry in entries if wanted.items() <= entry.items()]


@asynccontextmanager
async def sdk(url: str, key: str = KEY) -> AsyncIterator[AsyncDaytona]:
    """The real SDK with its event feed."""
    async with AsyncDaytona(DaytonaConfig(api_key=key, api_url=url)) as client:
        # Closed while it still connects, the feed would leave its socket open.
        assert client._event_dispatcher is not None
        assert client._event_dispatcher._connect_task is not None
        await asyncio.wait([client._event_dispatcher._connect_task])
        yield client


async def eventually(condition: Callable[[], Awaitable[Any]], seconds: float = 10.0) -> Any:
    """Wait until a condition holds and return what it returned."""
    deadline = time.monotonic() + seconds
    while not (result := await condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.02)
    return result
