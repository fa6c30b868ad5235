"""What is watched beside kopf, for as long as the process runs: all resources, or one ConfigMap.

The webhook adapter only needs to know where a resource is, so it lists and watches by itself; a
ConfigMap is listed and watched by its name. An outage ends nothing: the watch is taken up again,
after pauses that grow while nothing comes of it. Whatever was odd, the list is taken anew.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api.names import GROUP, PLURAL, VERSION
from issuesandbox.ports.errors import CallError, NotFound

_CHUNK = "500"
# Spread, so that the watches of all replicas do not end in step.
_SERVER_ENDS_AFTER = (240, 290)
# The server sends a bookmark each minute: one that is silent for longer is not there any more.
SILENCE = 75.0
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
    requests: KubeRequests,
    namespace: str,
    name: str,
    told: Callable[[Mapping[str, str] | None], None],
    retry: float,
    silence: float = SILENCE,
) -> None:
    """Tell, until cancelled, what the ConfigMap of this name holds; None where there is none.

    It is told at first and whenever it may have changed. Needs the rights to list and to watch
    that one name.
    """
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    source = _Source(requests, path, {"fieldSelector": f"metadata.name={name}"}, silence)
    await _keep(f"ConfigMap {name}", source, _Record(told), retry)


class _Record:
    """Hears of one ConfigMap as if it were many."""

    def __init__(self, told: Callable[[Mapping[str, str] | None], None]) -> None:
        self._told = told

    def replace(self, _: str, bodies: list[Mapping[str, Any]]) -> None:
        self._told(_data(bodies[0]) if bodies else None)

    def put(self, body: Mapping[str, Any]) -> None:
        self._told(_data(body))

    def drop(self, _: Mapping[str, Any]) -> None:
        self._told(None)


def _data(body: Mapping[str, Any]) -> Mapping[str, str]:
    return msgspec.convert(body.get("data") or {}, dict[str, str])


class _Source(NamedTuple):
    """What is listed and watched."""

    requests: KubeRequests
    path: str
    which: Mapping[str, str]
    silence: float = SILENCE
    scope: str = ""


async def _watch(requests: KubeRequests, namespace: str, audience: Audience, retry: float) -> None:
    scope = f"/namespaces/{namespace}" if namespace else ""
    source = _Source(requests, f"/apis/{GROUP}/{VERSION}{scope}/{PLURAL}", {}, scope=namespace)
    await _keep("resources", source, audience, retry)


async def _keep(what: str, source: _Source, audience: Audience, retry: float) -> None:
    version = ""

    async def follow() -> None:
        nonlocal version
        if not version:
            bodies, version = await _list(source)
            audience.replace(source.scope, bodies)
            del bodies
        begun, version = version, ""  # whatever goes wrong from here on needs a new list
        version = await _follow(source, begun, audience)

    await _again_and_again(what, follow, retry)


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


async def _list(source: _Source) -> tuple[list[Mapping[str, Any]], str]:
    found: list[Mapping[str, Any]] = []
    query = {"limit": _CHUNK, **source.which}
    while True:
        body = await source.requests.send("GET", source.path, query=query)
        page = msgspec.json.decode(body, type=_Page)
        found += page.items or ()
        if not page.metadata.next:
            return found, page.metadata.version
        query["continue"] = page.metadata.next


async def _follow(source: _Source, version: str, audience: Audience) -> str:
    """Tell what happens until the server ends the watch; return where the next one begins."""
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(random.randint(*_SERVER_ENDS_AFTER)),  # noqa: S311 - spreads load
        "resourceVersion": version,
        **source.which,
    }
    async for line in source.requests.lines(source.path, query, source.silence):
        event = msgspec.json.decode(line, type=_Event)
        if event.type == "ERROR":
            # Mostly the version is too old for a watch.
            raise NotFound(f"the watch ended: {event.object.get('message', '')}")
        version = msgspec.convert(event.object.get("metadata"), _Metadata).version
        if event.type == "DELETED":
            audience.drop(event.object)
        elif event.type in ("ADDED", "MODIFIED"):
            audience.put(event.object)
    return version
