"""ConfigMaps beside a resource, and the Secrets that a run needs, behind the `Ledgers` port."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api.names import API_VERSION, KIND
from issuesandbox.ports.errors import Conflict, NotFound
from issuesandbox.ports.resources import ResourceKey

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


class KubeLedgers:
    """Implements `ports.ledgers.Ledgers`."""

    def __init__(self, requests: KubeRequests) -> None:
        self._requests = requests

    async def put(
        self, owner: ResourceKey, name: str, data: Mapping[str, str], *, new: bool = False
    ) -> None:
        """Write a ConfigMap owned by the resource, so that it goes with it.

        `new` says that probably nobody wrote it before: it is created without a try to change it.
        """
        path = f"/api/v1/namespaces/{owner.namespace}/configmaps"
        reference = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": owner.name,
            "uid": owner.uid,
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [reference]},
            "data": dict(data),
        }
        if new:
            await self._make(path, name, body)
            return
        # Mostly it is there already; what it holds need not come back.
        try:
            change = {"data": dict(data)}
            await self._requests.send("PATCH", f"{path}/{name}", change, accept=_METADATA)
        except NotFound:
            await self._make(path, name, body)

    async def _make(self, path: str, name: str, body: Mapping[str, Any]) -> None:
        try:
            await self._requests.send("POST", path, body, accept=_METADATA)
        except Conflict:
            # Another replica was faster.
            change = {"data": body["data"]}
            await self._requests.send("PATCH", f"{path}/{name}", change, accept=_METADATA)

    async def secret(self, namespace: str, name: str) -> Mapping[str, str]:
        """Return the decoded keys of a Secret; `NotFound` if there is none."""
        body = await self._requests.send("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
        data = msgspec.json.decode(body, type=_Secret).data or {}
        return {
            key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()
        }
