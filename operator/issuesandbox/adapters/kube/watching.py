"""All resources of some namespaces, listed and then watched, for as long as the process runs.

For processes that only need to know where a resource is; the operator has kopf for that. An
outage ends nothing: the list is simply taken again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api.names import GROUP, PLURAL, VERSION
from issuesandbox.ports.errors import CallError, NotFound

_CHUNK = "500"
_SERVER_ENDS_AFTER = 290
_SILENCE = 300.0

logger = logging.getLogger(__name__)


class Audience(Protocol):
    """Who hears of resources."""

    def replace(self, scope: str, bodies: list[Mapping[str, Any]]) -> None:
        """Hear of all resources of a namespace, or of all namespaces if it is empty."""
        ...

    def put(self, body: Mapping[str, Any]) -> None:
        """Hear of a new or changed resource."""
        ...

    def drop(self, body: Mapping[str, Any]) -> None:
        """Hear of a resource that is gone."""
        ...


class _Metadata(msgspec.Struct):
    next: str = msgspec.field(default="", name="continue")
    version: str = msgspec.field(default="", name="resourceVersion")


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[dict[str, Any]] | None = None  # an empty list arrives as null


class _Event(msgspec.Struct):
    type: str
    object: dict[str, Any]


async def watch_resources(
    requests: KubeRequests, namespaces: tuple[str, ...], audience: Audience, retry: float
) -> None:
    """List and watch until cancelled."""
    async with asyncio.TaskGroup() as group:
        for namespace in namespaces or ("",):
            group.create_task(_watch(requests, namespace, audience, retry))


async def _watch(requests: KubeRequests, namespace: str, audience: Audience, retry: float) -> None:
    scope = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/{GROUP}/{VERSION}{scope}/{PLURAL}"
    while True:
        try:
            bodies, version = await _list(requests, path)
            audience.replace(namespace, bodies)
            del bodies
            await _follow(requests, path, version, audience)
        except NotFound:
            pass  # the version is too old for a watch: list again
        except CallError as error:
            logger.warning("watch of resources broke off", extra={"error": str(error)})
            await asyncio.sleep(retry)


async def _list(requests: KubeRequests, path: str) -> tuple[list[Mapping[str, Any]], str]:
    found: list[Mapping[str, Any]] = []
    query = {"limit": _CHUNK}
    while True:
        page = msgspec.json.decode(await requests.send("GET", path, query=query), type=_Page)
        found += page.items or ()
        if not page.metadata.next:
            return found, page.metadata.version
        query["continue"] = page.metadata.next


async def _follow(requests: KubeRequests, path: str, version: str, audience: Audience) -> None:
    while True:
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_SERVER_ENDS_AFTER),
        }
        async for line in requests.lines(path, query, _SILENCE):
            event = msgspec.json.decode(line, type=_Event)
            if event.type == "ERROR":
                raise NotFound(f"the watch ended: {event.object.get('message', '')}")
            version = event.object["metadata"]["resourceVersion"]
            if event.type == "DELETED":
                audience.drop(event.object)
            elif event.type in ("ADDED", "MODIFIED"):
                audience.put(event.object)
