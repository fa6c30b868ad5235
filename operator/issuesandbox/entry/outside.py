"""The connections that an administrator's command needs, from the operator's own settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import msgspec

from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.adapters.kube.connection import Connection
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.entry.settings import Settings
from issuesandbox.ports.errors import CallError


class _Metadata(msgspec.Struct):
    uid: str


class _Namespace(msgspec.Struct):
    metadata: _Metadata


@dataclass(frozen=True, slots=True)
class Connections:
    """Kubernetes and Daytona, and the installation to look after in both."""

    requests: KubeRequests
    sandboxes: DaytonaSandboxes
    installation: str
    home: str
    """The uid of the operator's own namespace; empty where it may not be read."""


@asynccontextmanager
async def connected(settings: Settings, connection: Connection) -> AsyncIterator[Connections]:
    """Open the connections and close them in the end."""
    timings = settings.timings
    async with AsyncExitStack() as stack:
        timeout = timings.read_timeout.total_seconds()
        requests = KubeRequests(connection.server, connection.session(limit=20), timeout)
        stack.push_async_callback(requests.close)
        key = settings.daytona_api_key.get_secret_value()
        sandboxes = DaytonaSandboxes(settings.daytona_api_url, key, timings)
        stack.push_async_callback(sandboxes.close)
        home = await home_uid(settings, requests, connection.namespace)
        yield Connections(requests, sandboxes, settings.installation or home, home)


async def home_uid(settings: Settings, requests: KubeRequests, namespace: str) -> str:
    """Return the uid of the operator's own namespace; empty where that is hidden and not needed."""
    try:
        return await namespace_uid(requests, namespace)
    except CallError:
        if settings.installation is None:
            raise
        return ""


async def namespace_uid(requests: KubeRequests, namespace: str) -> str:
    """Return the uid of the operator's own namespace: the installation unless one is set."""
    body = await requests.send("GET", f"/api/v1/namespaces/{namespace}")
    return msgspec.json.decode(body, type=_Namespace).metadata.uid
