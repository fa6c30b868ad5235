"""The adapter's server over real HTTP, with somebody behind it who only takes notes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from webhook_door import SECRETS, Door, Notes

from issuesandbox.entry.webhook.server import Limits, WebhookServer


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
async def door(notes: Notes) -> AsyncIterator[Door]:
    limits = Limits(body=25 * 2**20, buffered=40 * 2**20, at_once=20, seconds=0.5, work=2.0)
    server = WebhookServer(SECRETS, notes.receive, lambda: notes.ready, CollectorRegistry(), limits)
    runner = server.runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:
        yield Door(session, "127.0.0.1", port, server)
    await runner.cleanup()
    # A connection that was refused lingers for a moment, so that its sender reads the answer.
    async with asyncio.timeout(5):
        while any("RequestHandler" in str(each) for each in asyncio.all_tasks()):
            await asyncio.sleep(0.02)
