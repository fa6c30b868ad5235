"""IssueSandbox resources behind the `Resources` port."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import msgspec

from issuesandbox.adapters.kube.backlog import Backlog
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api.constraints import clip
from issuesandbox.api.names import API_VERSION, GROUP, KIND, PLURAL, VERSION
from issuesandbox.clock import Clock
from issuesandbox.ports.errors import Conflict, NotFound, Unavailable
from issuesandbox.ports.resources import EventNote, ResourceKey

_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_CHUNK = 500
_REMEMBERED = 1000
# The API server counts bytes.
_LONGEST_NOTE = 1024


class KubeResources:
    """Every write names the version it was decided on, so that a stale one is refused."""

    def __init__(
        self,
        requests: KubeRequests,
        clock: Clock,
        reporter: str,
        backlog: Backlog | None = None,
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._reporter = reporter
        self._backlog = backlog
        self._repeats = _Repeats()

    async def patch(
        self, key: ResourceKey, version: str, changes: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Merge changes into the resource if it is still at `version`; return the new one."""
        metadata = {**changes.get("metadata", {}), "resourceVersion": version, "uid": key.uid}
        return await self._patch(_path(key), {**changes, "metadata": metadata})

    async def patch_status(
        self, key: ResourceKey, version: str, status: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Merge changes into the status if the resource is still at `version`."""
        metadata = {"resourceVersion": version, "uid": key.uid}
        return await self._patch(f"{_path(key)}/status", {"metadata": metadata, "status": status})

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        """Return the resource as it is now."""
        return _object(await self._requests.send("GET", _path(key)))

    async def delete(self, key: ResourceKey, version: str) -> None:
        """Delete the resource if it is still at `version`."""
        conditions = {"preconditions": {"uid": key.uid, "resourceVersion": version}}
        await self._requests.send("DELETE", _path(key), conditions)

    async def uids(self, namespaces: tuple[str, ...]) -> AsyncIterator[frozenset[ResourceKey]]:
        """Yield the keys of all resources, chunk by chunk, from their metadata alone."""
        for namespace in namespaces or ("",):
            scope = f"/namespaces/{namespace}" if namespace else ""
            path = f"/apis/{GROUP}/{VERSION}{scope}/{PLURAL}"
            query = {"limit": str(_CHUNK)}
            while True:
                body = await self._page(path, query)
                page = msgspec.json.decode(body, type=_MetadataList)
                yield frozenset(
                    ResourceKey(each.metadata.namespace, each.metadata.name, each.metadata.uid)
                    for each in page.items or ()
                )
                if not page.metadata.next:
                    break
                query["continue"] = page.metadata.next

    async def _page(self, path: str, query: Mapping[str, str]) -> bytes:
        try:
            return await self._requests.send("GET", path, query=query, accept=_METADATA_LIST)
        except NotFound as error:
            if "continue" not in query:
                raise
            # 410: the list took longer than the API server remembers. It says nothing of the rest.
            raise Unavailable(str(error)) from error

    async def note(self, key: ResourceKey, event: EventNote) -> None:
        """Post a Kubernetes Event about the resource, later where there is a backlog."""
        now = self._clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        name = _event_name(key, event)
        reference = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": key.namespace,
            "name": key.name,
            "uid": key.uid,
        }
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": key.namespace},
            "regarding": reference,
            "eventTime": now,
            "reportingController": "issuesandbox.dev/operator",
            "reportingInstance": self._reporter,
            "action": "Reconcile",
            "reason": event.reason,
            "note": clip(event.message, _LONGEST_NOTE),
            "type": "Warning" if event.warning else "Normal",
        }
        if self._backlog is None:
            await self._post(body)
        else:
            self._backlog.add(partial(self._post, body))

    async def _post(self, event: Mapping[str, Any]) -> None:
        """Post an Event; one that repeats itself is counted."""
        name, namespace = event["metadata"]["name"], event["metadata"]["namespace"]
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        try:
            await self._requests.send("POST", path, event)
        except Conflict:
            seen = {"count": self._repeats.count(name), "lastObservedTime": event["eventTime"]}
            await self._requests.send("PATCH", f"{path}/{name}", {"series": seen})

    async def _patch(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return _object(await self._requests.send("PATCH", path, body))


class _Continue(msgspec.Struct):
    next: str = msgspec.field(default="", name="continue")


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    namespace: str = ""


class _Item(msgspec.Struct):
    metadata: _Metadata


class _MetadataList(msgspec.Struct):
    metadata: _Continue
    items: list[_Item] | None = None  # an empty list arrives as null


class _Repeats:
    """How often the same thing was told, as far as this process knows; forgets the oldest."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, name: str) -> int:
        """Count one more time; the API server counts a series from two."""
        again = self._counts.pop(name, 1) + 1
        self._counts[name] = again
        if len(self._counts) > _REMEMBERED:
            del self._counts[next(iter(self._counts))]
        return again


def _event_name(key: ResourceKey, event: EventNote) -> str:
    """Return a name that says the same of the same: the API server keeps only one of a name."""
    told = f"{key.uid}/{event.reason}/{event.message}".encode()
    return f"{key.name[:200].rstrip('-.')}.{hashlib.sha256(told).hexdigest()[:16]}"


def _path(key: ResourceKey) -> str:
    return f"/apis/{GROUP}/{VERSION}/namespaces/{key.namespace}/{PLURAL}/{key.name}"


def _object(body: bytes) -> Mapping[str, Any]:
    return msgspec.json.decode(body, type=dict[str, Any])
