"""Takes GitHub's deliveries and keeps them, so that a test can deliver them as it likes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web


@dataclass
class Recorder:
    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@asynccontextmanager
async def recording() -> AsyncIterator[Recorder]:
    recorder = Recorder()

    async def take(request: web.Request) -> web.Response:
        wanted = ("X-GitHub-Event", "X-GitHub-Delivery", "X-Hub-Signature-256", "Content-Type")
        headers = {name: request.headers[name] for name in wanted}
        recorder.got.append((headers, await request.read()))
        return web.Response(status=202)

    app = web.Application(client_max_size=2**25)
    app.router.add_post("/webhook", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield recorder
    finally:
        await runner.cleanup()


async def deliver(
    http: aiohttp.ClientSession, url: str, delivery: tuple[dict[str, str], bytes]
) -> int:
    headers, body = delivery
    async with http.post(f"{url}/webhook", headers=headers, data=body) as answer:
        await answer.read()
        return answer.status
