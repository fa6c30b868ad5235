"""Resources picked by a label selector, and their deletion: what administrators ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api.names import GROUP, PLURAL, VERSION
from issuesandbox.ports.errors import NotFound
from issuesandbox.ports.resources import ResourceKey

_CHUNK = "500"


class _Metadata(msgspec.Struct):
    next: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[dict[str, Any]] | None = None  # an empty list arrives as null


class KubeSelection:
    """The resources of one namespace, or of all of them."""

    def __init__(self, requests: KubeRequests) -> None:
        self._requests = requests

    async def select(self, selector: str, namespace: str) -> list[Mapping[str, Any]]:
        """Return the resources with matching labels; an empty namespace stands for all."""
        found: list[Mapping[str, Any]] = []
        query = {"labelSelector": selector, "limit": _CHUNK}
        while True:
            body = await self._requests.send("GET", _path(namespace), query=query)
            page = msgspec.json.decode(body, type=_Page)
            found += page.items or ()
            if not page.metadata.next:
                return found
            query["continue"] = page.metadata.next

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        """Return exactly this resource as it is now, not a namesake."""
        body = await self._requests.send("GET", f"{_path(key.namespace)}/{key.name}")
        found = msgspec.json.decode(body, type=dict[str, Any])
        if found["metadata"]["uid"] != key.uid:
            raise NotFound(f"{key} is another one now")
        return found

    async def delete(self, key: ResourceKey) -> None:
        """Ask for the deletion of exactly this resource, not of a namesake."""
        body = {"preconditions": {"uid": key.uid}}
        await self._requests.send("DELETE", f"{_path(key.namespace)}/{key.name}", body)


def _path(namespace: str) -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/{VERSION}{scope}/{PLURAL}"
