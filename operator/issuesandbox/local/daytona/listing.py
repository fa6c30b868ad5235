"""The list of sandboxes: pages, and the ways in which it may lag behind the truth.

The service documents its list as eventually consistent. Two switches show what that means: a list
as of some seconds ago, and one that takes back and forth what changed lately.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

from issuesandbox.local.daytona.lifecycle import Change
from issuesandbox.local.daytona.list_query import ListQuery
from issuesandbox.local.daytona.model import Sandbox, SandboxId, State
from issuesandbox.local.daytona.store import Store
from issuesandbox.local.daytona.timeline import Timeline

# How far back the list can lag.
_MEMORY_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Page:
    """One page of rows and the cursor of the next one."""

    rows: list[Sandbox]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class _Past:
    """What a row looked like until a moment; None if it did not exist."""

    until: float
    id: SandboxId
    organization: str
    row: Sandbox | None


class Listing:
    """Answers list calls from the rows or, on request, from their recent past."""

    def __init__(self, store: Store, timeline: Timeline, seed: int) -> None:
        self._store = store
        self._timeline = timeline
        self._random = random.Random(seed)  # noqa: S311 - a repeatable world, not a secret
        self._past: deque[_Past] = deque()
        self._latest: dict[SandboxId, Sandbox] = {}
        self._remembers = False

    def remember(self) -> None:
        """Begin to keep the past; it costs memory, so nobody does it unasked."""
        if not self._remembers:
            self._remembers = True
            self._latest = {row.id: copy(row) for row in self._store}

    def observe(self, change: Change) -> None:
        """Keep what a row looked like before this change."""
        if not self._remembers:
            return
        row, now = change.sandbox, self._timeline.now()
        self._past.append(_Past(now, row.id, row.organization, self._latest.get(row.id)))
        if row.state is State.DESTROYED:
            self._latest.pop(row.id, None)
        else:
            self._latest[row.id] = copy(row)
        while self._past and self._past[0].until < now - _MEMORY_SECONDS:
            self._past.popleft()

    def truth(self, organization: str) -> Iterable[Sandbox]:
        """Return the rows as they are."""
        return self._store.of(organization)

    def lagging(self, organization: str, since: float) -> Iterable[Sandbox]:
        """Return the rows as they were at a moment, as far as the memory goes."""
        rows: dict[SandboxId, Sandbox | None] = {row.id: row for row in self.truth(organization)}
        rows.update(self._before(organization, since))
        return [row for row in rows.values() if row is not None]

    def flapping(self, organization: str, since: float) -> Iterable[Sandbox]:
        """Return the rows with all that changed since a moment now old, now new, now missing."""
        rows: dict[SandboxId, Sandbox | None] = {row.id: row for row in self.truth(organization)}
        for sandbox, old in self._before(organization, since).items():
            rows[sandbox] = self._random.choice([rows.get(sandbox), old, None])
        return [row for row in rows.values() if row is not None]

    def page(self, rows: Iterable[Sandbox], query: ListQuery) -> Page:
        """Return one page of those rows that the query wants."""
        found, key = list(rows), query.key
        if query.cursor is not None:
            # First, because it leaves the fewest rows to the tests.
            last = (query.cursor.value, query.cursor.id)
            if query.descending:
                found = [row for row in found if key(row) < last]
            else:
                found = [row for row in found if key(row) > last]
        for test in query.tests:
            found = [row for row in found if test(row)]
        pick = heapq.nlargest if query.descending else heapq.nsmallest
        chosen = pick(query.limit, found, key=key)
        more = len(found) > len(chosen)
        return Page(chosen, query.cursor_after(chosen[-1]) if more else None)

    def _before(self, organization: str, since: float) -> dict[SandboxId, Sandbox | None]:
        before: dict[SandboxId, Sandbox | None] = {}
        for past in self._past:
            if past.until >= since and past.organization == organization:
                before.setdefault(past.id, past.row)
        return before
