"""Where the watch's events become cache entries and work; nothing is decided here."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.cache import ResourceCache, key_of
from issuesandbox.engine.memory import settle_memory
from issuesandbox.engine.workqueue import WorkQueue
from issuesandbox.ports.errors import CallError, NotFound
from issuesandbox.ports.resources import ResourceKey

logger = logging.getLogger(__name__)

# How often a second the first list is looked at, and after how many looks without any progress
# another one is asked for.
_LOOKS = 10
_PATIENCE = 50


class Census(Protocol):
    """Who exists, from metadata alone."""

    def uids(self, namespaces: tuple[str, ...]) -> AsyncIterator[frozenset[ResourceKey]]:
        """Yield the keys of all resources, chunk by chunk."""
        ...

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        """Return the resource at this place as it is now."""
        ...


class Intake:
    """Feeds the cache and the queue from events, fleet changes and a rare full list."""

    def __init__(
        self,
        cache: ResourceCache,
        queue: WorkQueue[ResourceKey],
        census: Census,
        timings: Timings,
        namespaces: tuple[str, ...],
        on_made: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._census = census
        self._timings = timings
        self._namespaces = namespaces
        self._on_made = on_made
        self._by_uid: dict[str, ResourceKey] = {}
        self._complete = asyncio.Event()

    def is_complete(self) -> bool:
        """Tell whether every resource that existed at the start is in the cache."""
        return self._complete.is_set()

    async def complete(self) -> None:
        """Wait until every resource that existed at the start is in the cache."""
        await self._complete.wait()

    def receive(self, kind: str | None, body: Mapping[str, Any]) -> None:
        """Take one event of the watch."""
        key = key_of(body)
        if kind == "DELETED":
            self._forget(key)
        elif self._cache.put(body):
            self._by_uid[key.uid] = key
            if kind == "ADDED":
                self._on_made(body)
            if kind is not None or self.is_complete():
                # The echo of our own write may be here before the answer to it.
                self._queue.add(key, unless=lambda: self._cache.is_own(key))

    def refresh(self, body: Mapping[str, Any]) -> None:
        """Take a body that was read beside the watch, which may have died unseen."""
        self.receive("MODIFIED", body)

    def wake(self, uid: str) -> None:
        """Bring the pass of a resource forward whose sandbox changed."""
        key = self.find(uid)
        if key is not None:
            self._queue.add(key)

    def compare(self, uid: str, shown: tuple[SandboxView, ...]) -> None:
        """Bring a pass forward if the fleet view shows what the resource does not say itself."""
        key = self.find(uid)
        told = [(each.id, each.state) for each in shown]
        if key is not None and self._is_news(key, told):
            # A pass that is under way may be just about to write it down.
            self._queue.add(key, unless=lambda: not self._is_news(key, told))

    def _is_news(self, key: ResourceKey, told: list[tuple[SandboxId, str | None]]) -> bool:
        return not self._cache.settled(key) or told != [self._cache.sandbox(key)]

    def find(self, uid: str) -> ResourceKey | None:
        """Return the key of a resource by its uid alone."""
        return self._by_uid.get(uid)

    def wake_all(self) -> None:
        """Bring every pass forward: all are known now, or this replica is in charge now."""
        for key in self._cache.keys():  # noqa: SIM118 - not a mapping
            self._queue.add(key, self._leisure(key))

    def _leisure(self, key: ResourceKey) -> float:
        """Return how long a resource may wait when all come at once.

        Who is settled lets the others go first, and by then there is a fleet view to look at.
        """
        tick = self._timings.fleet_tick.total_seconds() if self._cache.settled(key) else 0.0
        return random.uniform(0.25, 1) * tick  # noqa: S311 - spreads load, guards nothing

    async def run_resync(self) -> None:
        """Compare the cache with a full list, at the start and then rarely, until cancelled."""
        while True:
            try:
                await self._resync()
            except CallError as error:
                logger.warning("resync failed", extra={"error": str(error)})
            wait = self._timings.resync if self.is_complete() else self._timings.settle_check
            await asyncio.sleep(wait.total_seconds())

    async def _resync(self) -> None:
        before = frozenset(self._cache.keys())
        listed: set[ResourceKey] = set()
        async for chunk in self._census.uids(self._namespaces):
            listed |= chunk
        # Only what was known before the list began can have been missed by it.
        for key in before - listed:
            logger.info("missed delete repaired", extra={"resource": str(key)})
            self._forget(key)
        if self.is_complete():
            await self._read_missed(listed)
        elif await self._all_shown(listed):
            self._complete.set()
            self.wake_all()
            await asyncio.sleep(0)
            settle_memory()

    async def _read_missed(self, listed: set[ResourceKey]) -> None:
        for key in listed.difference(self._cache.keys()):
            try:
                body = await self._census.get(key)
            except NotFound:
                continue
            logger.info("missed resource repaired", extra={"resource": str(key)})
            self.refresh(body)

    async def _all_shown(self, listed: set[ResourceKey]) -> bool:
        """Wait while the watch shows more and more of what was listed; tell whether it got to all.

        Where it stops, something was deleted before the watch came to it: only a new list tells.
        """
        look = self._timings.settle_check.total_seconds() / _LOOKS
        shown, stalled = -1, 0
        while stalled < _PATIENCE:
            if len(self._by_uid) >= len(listed) and all(key.uid in self._by_uid for key in listed):
                return True
            stalled = stalled + 1 if len(self._by_uid) == shown else 0
            shown = len(self._by_uid)
            await asyncio.sleep(look)
        return False

    def _forget(self, key: ResourceKey) -> None:
        self._cache.drop(key)
        self._by_uid.pop(key.uid, None)
        self._queue.add(key)
