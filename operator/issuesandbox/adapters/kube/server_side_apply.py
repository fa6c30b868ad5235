"""Resources behind the `Applied` port: server-side apply under the webhook adapter's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from issuesandbox.adapters.kube.requests import APPLY_PATCH, KubeRequests
from issuesandbox.api.names import GROUP, PLURAL, VERSION
from issuesandbox.ports.resources import ResourceKey

# No stored object is at the first version of a store: where one exists, the apply is refused.
_NOT_THERE = "1"


class KubeApplied:
    """Every write names the version it was decided on, or that there must be none."""

    def __init__(self, requests: KubeRequests, manager: str) -> None:
        self._requests = requests
        # What others hold was taken out of the body; the rest is ours to take.
        self._query = {"fieldManager": manager, "force": "true"}

    async def get(self, namespace: str, name: str) -> Mapping[str, Any]:
        """Return the resource as it is now, or raise NotFound."""
        return _object(await self._requests.send("GET", _path(namespace, name)))

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Apply a resource that does not exist; raise Conflict if it does."""
        metadata = {**body["metadata"], "resourceVersion": _NOT_THERE}
        return await self.apply({**body, "metadata": metadata})

    async def apply(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Apply to a resource that is still at the version in the body, else raise Conflict."""
        metadata = body["metadata"]
        path = _path(metadata["namespace"], metadata["name"])
        return _object(
            await self._requests.send("PATCH", path, body, query=self._query, patch=APPLY_PATCH)
        )

    async def delete(self, key: ResourceKey, version: str) -> None:
        """Ask for the deletion of exactly this resource at this version, else raise Conflict."""
        body = {"preconditions": {"uid": key.uid, "resourceVersion": version}}
        await self._requests.send("DELETE", _path(key.namespace, key.name), body)


def _path(namespace: str, name: str) -> str:
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}/{name}"


def _object(body: bytes) -> Mapping[str, Any]:
    return msgspec.json.decode(body, type=dict[str, Any])
