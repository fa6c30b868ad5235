"""The leases that replicas contest. Who may take one is the elector's business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """One lease as it was read or shall be written."""

    name: str
    holder: str = ""
    """Who holds it; empty when it was released."""
    duration: float | None = None
    """How many seconds without a renewal free it, by its holder's word."""
    acquired_at: datetime | None = None
    renewed_at: datetime | None = None
    """For people: no decision compares it with a clock."""
    transitions: int = 0
    version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What others wrote on the object, kept through every write."""


class Leases(Protocol):
    """Reads and guarded writes of leases; every call may take any time."""

    async def get(self, name: str) -> LeaseRecord:
        """Return the lease as it is now, or raise NotFound."""
        ...

    async def starting_with(self, prefix: str) -> Sequence[LeaseRecord]:
        """Return all leases whose name starts with `prefix`."""
        ...

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        """Create the lease, or raise Conflict if it exists."""
        ...

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        """Write the lease if it is still at the record's version, else raise Conflict."""
        ...

    async def delete(self, record: LeaseRecord) -> None:
        """Delete the lease if it is still at the record's version, else raise Conflict."""
        ...
