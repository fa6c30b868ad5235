"""An API server that answers what a test wants it to, reached as the real one is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from issuesandbox.adapters.kube.requests import KubeRequests

Handler = Callable[[web.BaseRequest], Coroutine[Any, Any, web.StreamResponse]]


@asynccontextmanager
async def api_server(handler: Handler) -> AsyncIterator[KubeRequests]:
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    requests = KubeRequests(url, aiohttp.ClientSession(), 5)
    try:
        yield requests
    finally:
        await requests.close()
        await runner.cleanup()
