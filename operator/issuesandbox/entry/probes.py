"""What Kubernetes and Prometheus ask the process: alive, ready, and the numbers.

Alive means that the event loop answers, so an outage of Daytona alone makes nobody restart. Ready
means what the caller says, who also says what is missing. `/debug/state` is for somebody on the
machine itself, never for the network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from issuesandbox.ports.errors import IssueSandboxError


class PortTakenError(IssueSandboxError):
    """The address for probes and metrics cannot be used."""


@asynccontextmanager
async def serve_probes(
    host: str,
    port: int,
    registry: CollectorRegistry,
    missing: Callable[[], str | None],
    state: Callable[[], Mapping[str, Any]] = dict,
) -> AsyncIterator[int]:
    """Serve `/healthz`, `/readyz`, `/metrics` and `/debug/state`; yield the port in use."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        lack = missing()
        text = "ok\n" if lack is None else f"not ready: {lack}\n"
        return web.Response(text=text, status=200 if lack is None else 503)

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    async def debug(request: web.Request) -> web.Response:
        if not is_local(request.remote):
            raise web.HTTPNotFound
        text = msgspec.json.format(msgspec.json.encode(state(), enc_hook=str)).decode()
        return web.json_response(text=text)

    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
            web.get("/metrics", metrics),
            web.get("/debug/state", debug),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            text = f"cannot listen on {host}:{port}: {error.strerror}; set ISSUESANDBOX_HTTP_PORT"
            raise PortTakenError(text) from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def is_local(remote: str | None) -> bool:
    """Tell whether a request comes from this machine, as through `kubectl port-forward`."""
    return remote is not None and ip_address(remote).is_loopback
