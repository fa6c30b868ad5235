"""A foreign host that remembers with which credentials it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

# Where clients put what they want to be known by.
_CREDENTIALS = ("Authorization", "x-api-key")


@asynccontextmanager
async def scripted_host(status: int) -> AsyncIterator[tuple[str, set[str | None]]]:
    """Serve one status for everything; yield the address and the credentials that were shown."""
    visitors: set[str | None] = set()

    async def answer(request: web.Request) -> web.Response:
        shown = (request.headers.get(name) for name in _CREDENTIALS)
        visitors.add(next((each for each in shown if each), None))
        return web.Response(status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", visitors
    await runner.cleanup()
