"""The IssueSandbox resources as the engine writes them. Reading is the cache's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class ResourceKey(NamedTuple):
    """Which resource: its place and, against reuse of the place, its uid."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class EventNote:
    """A Kubernetes Event in the making."""

    reason: str
    message: str
    warning: bool = False


class Resources(Protocol):
    """Writes to IssueSandbox resources, each guarded by the version it was decided on."""

    async def patch(
        self, key: ResourceKey, version: str, changes: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Merge changes into the resource if it is still at `version`; return the new one."""
        ...

    async def patch_status(
        self, key: ResourceKey, version: str, status: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Merge changes into the status if the resource is still at `version`."""
        ...

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        """Return the resource as it is now."""
        ...

    async def delete(self, key: ResourceKey, version: str) -> None:
        """Delete the resource if it is still at `version`."""
        ...

    async def note(self, key: ResourceKey, event: EventNote) -> None:
        """Post a Kubernetes Event about the resource."""
        ...
