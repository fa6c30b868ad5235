"""GET by id or name, with the service's cache as a switch.

With the cache on, an answer may be old: a change drops cached rows only after a while, and a name
that was looked up before it existed stays missing until the entry ages out.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from dataclasses import dataclass

from issuesandbox.local.daytona.errors import not_found
from issuesandbox.local.daytona.lifecycle import Change
from issuesandbox.local.daytona.model import Sandbox, SandboxId
from issuesandbox.local.daytona.store import Store
from issuesandbox.local.daytona.timeline import Timeline

# Invalidation is asynchronous in the service; this is how long a changed row may linger.
_INVALIDATION_SECONDS = 1.0

_Question = tuple[str, str]


@dataclass(slots=True)
class _Cached:
    sandbox: Sandbox | None
    expires_at: float


class Lookup:
    """Finds sandboxes for readers; writers always use the store itself."""

    def __init__(self, store: Store, timeline: Timeline, seconds: float) -> None:
        self.seconds = seconds
        self._store = store
        self._timeline = timeline
        self._cache: dict[_Question, _Cached] = {}
        self._questions: defaultdict[SandboxId, set[_Question]] = defaultdict(set)

    def find(self, organization: str, reference: str) -> Sandbox:
        """Return the sandbox as a reader sees it."""
        if self.seconds <= 0:
            return self._store.find(organization, reference)
        question = (organization, reference)
        cached = self._cache.get(question)
        if cached is None or cached.expires_at <= self._timeline.now():
            cached = self._cache[question] = self._look(question)
        if cached.sandbox is None:
            raise not_found(reference)
        return cached.sandbox

    def observe(self, change: Change) -> None:
        """Let what is cached of a changed row expire soon."""
        soon = self._timeline.now() + _INVALIDATION_SECONDS
        for question in self._questions.pop(change.sandbox.id, ()):
            cached = self._cache[question]
            cached.expires_at = min(cached.expires_at, soon)

    def switch(self, seconds: float) -> None:
        """Turn the cache on (its age in seconds) or off (0)."""
        self.seconds = seconds
        self._cache.clear()
        self._questions.clear()

    def _look(self, question: _Question) -> _Cached:
        found = self._store.visible(*question)
        if found is not None:
            self._questions[found.id].add(question)
        return _Cached(copy(found), self._timeline.now() + self.seconds)
