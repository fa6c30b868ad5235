"""What a pass writes to Kubernetes: every write guarded by the version it was decided on.

What comes back, or is read because a write was refused, goes into the cache. What is written, and
when, is the pass's business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from issuesandbox.api.status import Status
from issuesandbox.clock import Clock
from issuesandbox.engine.books import Books
from issuesandbox.engine.cache import ResourceCache, key_of
from issuesandbox.engine.merge import merge_patch
from issuesandbox.engine.reading import Reading
from issuesandbox.ports.errors import CallError, Conflict, NotFound
from issuesandbox.ports.resources import EventNote, ResourceKey, Resources

logger = logging.getLogger(__name__)


class Writer:
    """Writes for all resources; `check_charge` is asked right before each write."""

    def __init__(
        self,
        resources: Resources,
        cache: ResourceCache,
        clock: Clock,
        books: Books,
        check_charge: Callable[[Reading], None],
    ) -> None:
        self._resources = resources
        self._cache = cache
        self._clock = clock
        self._books = books
        self._check_charge = check_charge

    async def patch(
        self, key: ResourceKey, reading: Reading, metadata: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Merge changes into the metadata."""
        self._check_charge(reading)
        return await self._resources.patch(key, reading.version, {"metadata": metadata})

    async def write_status(
        self, key: ResourceKey, reading: Reading, status: Status
    ) -> Mapping[str, Any] | None:
        """Write what is new in a status; return the resource, or None if nothing is."""
        before, status = reading.resource.status, status.fitted()
        patch = {} if status == before else merge_patch(before.to_json(), status.to_json())
        if not patch:
            return None
        self._check_charge(reading)
        body = await self._resources.patch_status(key, reading.version, patch)
        self._books.written(key, body, before, status, self._clock.now())
        self._cache.put(body, own=True)
        return body

    async def look_again(self, key: ResourceKey) -> None:
        """Read the resource beside the watch, which may have died unseen."""
        try:
            body = await self._resources.get(key)
        except NotFound:
            self._cache.drop(key)
        except CallError as error:
            logger.info("not read", extra={"resource": str(key), "error": str(error)})
        else:
            if key_of(body) == key:
                self._cache.put(body)
            else:
                self._cache.drop(key)

    async def confirm(self, key: ResourceKey, reading: Reading) -> None:
        """Make sure that what was announced long ago is still wanted.

        No write of this pass would tell. Whoever deletes the resource after this look waits until
        what is sent now has landed.
        """
        body = await self._resources.get(key)
        if key_of(body) != key or body["metadata"]["resourceVersion"] != reading.version:
            raise Conflict(f"{key} has changed")

    async def tell(self, key: ResourceKey, *happened: EventNote) -> None:
        """Post Events."""
        for note in happened:
            try:
                await self._resources.note(key, note)
            except CallError as error:
                # An Event is a courtesy; losing one must not fail a pass.
                logger.warning("event lost", extra={"resource": str(key), "error": str(error)})
