"""Tells what happens to the resources as it happens, one line per change."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any

import aiohttp

from issuesandbox.api.names import GROUP, PLURAL, VERSION
from issuesandbox.clock import Clock
from issuesandbox.local.control_plane.access import Access

_MAX_LINE = 4 << 20


async def tell(access: Access, clock: Clock, say: Callable[[str], None]) -> None:
    """Print a line for each change people care about, until cancelled."""
    told: dict[str, str] = {}
    while True:
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async for kind, resource in _changes(access):
                name = resource["metadata"]["name"]
                line = "deleted" if kind == "DELETED" else _describe(resource)
                if told.get(name) != line:
                    told[name] = line
                    say(f"{clock.now():%H:%M:%S}  {name:<32} {line}")
        await asyncio.sleep(1)


async def _changes(access: Access) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    trust = ssl.create_default_context(cafile=access.ca)
    url = f"{access.server}/apis/{GROUP}/{VERSION}/{PLURAL}"
    headers = {"Authorization": f"Bearer {access.token}"}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    async with (
        aiohttp.ClientSession(headers=headers, timeout=timeout, read_bufsize=_MAX_LINE) as session,
        session.get(url, params={"watch": "1"}, ssl=trust) as stream,
    ):
        async for line in stream.content:
            event = json.loads(line)
            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                yield event["type"], event["object"]


def _describe(resource: Mapping[str, Any]) -> str:
    status = resource.get("status", {})
    sandbox = status.get("sandbox", {})
    messages = {each["type"]: each["message"] for each in status.get("conditions", ())}
    seen = f"{sandbox.get('name', '-')} {sandbox.get('state', '-')}"
    return f"{status.get('phase', 'New'):<10} {seen:<28} {messages.get('Ready', '')}".rstrip()
