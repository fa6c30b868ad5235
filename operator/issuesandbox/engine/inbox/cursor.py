"""How far the catch-up came, kept in a ConfigMap: a restart or another replica goes on there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from issuesandbox.ports.inbox import Record, Records

_KEY = "cursor.json"


@dataclass(slots=True)
class Cursor:
    """Since when each repository and the deliveries must be looked at."""

    repositories: dict[str, datetime] = field(default_factory=dict)
    deliveries: datetime | None = None
    passed: datetime | None = None
    """When the last pass over all repositories began."""
    version: str = ""

    def since(self, repository: str, now: datetime) -> datetime:
        """Return where to begin; a repository that is new came after the last whole pass."""
        return self.repositories.get(repository.lower()) or self.passed or now

    def advance(self, repository: str, began: datetime) -> None:
        """Note that everything before this moment was looked at."""
        self.repositories[repository.lower()] = began


class _Stored(msgspec.Struct):
    repositories: dict[str, datetime] = {}
    deliveries: datetime | None = None
    passed: datetime | None = None


async def read_cursor(records: Records, name: str) -> Cursor:
    """Return the stored cursor; a damaged one counts as none."""
    record = await records.read(name)
    try:
        stored = msgspec.json.decode(record.data.get(_KEY, "{}"), type=_Stored)
    except msgspec.MsgspecError:
        stored = _Stored()
    return Cursor(stored.repositories, stored.deliveries, stored.passed, record.version)


async def begin_cursor(records: Records, name: str, began: datetime) -> Cursor:
    """Return the stored cursor; the very first pass stores when it began before it looks at all.

    Else everything up to the first pass that goes through would be nobody's.
    """
    cursor = await read_cursor(records, name)
    if cursor.passed is not None:
        return cursor
    cursor.passed, cursor.deliveries = began, cursor.deliveries or began
    await write_cursor(records, name, cursor)
    return await read_cursor(records, name)


async def write_cursor(records: Records, name: str, cursor: Cursor) -> None:
    """Store the cursor unless another replica did meanwhile."""
    stored = _Stored(cursor.repositories, cursor.deliveries, cursor.passed)
    data = {_KEY: msgspec.json.encode(stored).decode()}
    await records.write(name, Record(data, cursor.version))
