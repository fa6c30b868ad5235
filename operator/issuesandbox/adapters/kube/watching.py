"""What is watched beside kopf, for as long as the process runs: all resources, or one ConfigMap.

The webhook adapter only needs to know where a resource is, so it lists and watches by itself. Of a
ConfigMap a watch tells only that it changed; who cares reads it by name. An outage ends nothing:
the watch is taken up again, after pauses that grow while nothing comes of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api.names import GROUP, PLURAL, VERSION
from issuesandbox.ports.errors import CallError, NotFound

_CHUNK = "500"
_SERVER_ENDS_AFTER = 290
_SILENCE = 300.0
# A watch that lasted so long was a good one: what comes next is no repetition of a failure.
_STEADY = 5.0
_LONGEST_PAUSE = 16

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


async def watch_record(
    requests: KubeRequests, namespace: str, name: str, changed: Callable[[], None], retry: float
) -> None:
    """Tell, until cancelled, when the ConfigMap of this name may have changed.

    Needs the right to watch that one name. Whoever is told reads it: a watch may miss something.
    """
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    async def follow() -> None:
        changed()
        async for line in _stream(requests, path, {"fieldSelector": f"metadata.name={name}"}):
            if _event(line).type != "BOOKMARK":
                changed()

    await _again_and_again(f"ConfigMap {name}", follow, retry)


async def _watch(requests: KubeRequests, namespace: str, audience: Audience, retry: float) -> None:
    scope = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/{GROUP}/{VERSION}{scope}/{PLURAL}"
    version = ""

    async def follow() -> None:
        nonlocal version
        if not version:
            bodies, version = await _list(requests, path)
            audience.replace(namespace, bodies)
            del bodies
        begun, version = version, ""  # whatever goes wrong from here on needs a new list
        version = await _follow(requests, path, begun, audience)

    await _again_and_again("resources", follow, retry)


async def _again_and_again(what: str, follow: Callable[[], Awaitable[None]], retry: float) -> None:
    """Follow for ever; whoever ends early, well or not, waits longer each time."""
    clock, pause = asyncio.get_running_loop().time, retry
    while True:
        began = clock()
        try:
            await follow()
        except (CallError, msgspec.MsgspecError) as error:
            logger.warning("watch broke off", extra={"what": what, "error": str(error)})
        if clock() - began >= _STEADY:
            pause = retry
        await asyncio.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311 - spreads load
        pause = min(pause * 2, retry * _LONGEST_PAUSE)


async def _list(requests: KubeRequests, path: str) -> tuple[list[Mapping[str, Any]], str]:
    found: list[Mapping[str, Any]] = []
    query = {"limit": _CHUNK}
    while True:
        page = msgspec.json.decode(await requests.send("GET", path, query=query), type=_Page)
        found += page.items or ()
        if not page.metadata.next:
            return found, page.metadata.version
        query["continue"] = page.metadata.next


async def _follow(requests: KubeRequests, path: str, version: str, audience: Audience) -> str:
    """Tell what happens until the server ends the watch; return where the next one begins."""
    async for line in _stream(requests, path, {"resourceVersion": version}):
        event = _event(line)
        version = event.object["metadata"]["resourceVersion"]
        if event.type == "DELETED":
            audience.drop(event.object)
        elif event.type in ("ADDED", "MODIFIED"):
            audience.put(event.object)
    return version


def _stream(requests: KubeRequests, path: str, which: Mapping[str, str]) -> AsyncIterator[bytes]:
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(_SERVER_ENDS_AFTER),
        **which,
    }
    return requests.lines(path, query, _SILENCE)


def _event(line: bytes) -> _Event:
    event = msgspec.json.decode(line, type=_Event)
    if event.type == "ERROR":
        # Mostly the version is too old for a watch.
        raise NotFound(f"the watch ended: {event.object.get('message', '')}")
    return event
