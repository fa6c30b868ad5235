"""The resources and records as the webhook adapter reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from issuesandbox.ports.resources import EventNote, ResourceKey


@dataclass(frozen=True, slots=True)
class Record:
    """The data of a ConfigMap and the version it was read at; an empty one does not exist."""

    data: Mapping[str, str]
    version: str = ""


class Applied(Protocol):
    """Resources, written by server-side apply under a manager's name."""

    async def get(self, namespace: str, name: str) -> Mapping[str, Any]:
        """Return the resource as it is now, or raise NotFound."""
        ...

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Apply a resource that does not exist; raise Conflict if it does."""
        ...

    async def apply(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Apply to a resource that is still at the version in the body, else raise Conflict."""
        ...

    async def delete(self, key: ResourceKey, version: str) -> None:
        """Ask for the deletion of exactly this resource at this version, else raise Conflict."""
        ...


class Records(Protocol):
    """ConfigMaps beside the adapter."""

    async def read(self, name: str) -> Record:
        """Return a ConfigMap's data; nothing if there is none."""
        ...

    async def write(self, name: str, record: Record) -> None:
        """Store data if the ConfigMap is still at the record's version, else raise Conflict."""
        ...

    async def note(self, name: str, event: EventNote) -> None:
        """Post an Event about a ConfigMap."""
        ...
