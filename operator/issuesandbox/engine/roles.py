"""What this replica may do right now: act for a repository, be the one that tidies up.

With one shard the acting replica is the holder of `leader`. With more, every replica has a
lease of its own as membership, the live members share the shards by hash, and each acts for
the shards whose lease it holds. One of those who act is the `singleton`. Knows nothing of passes.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from issuesandbox.clock import Clock
from issuesandbox.domain.sharding import owner, shard_of
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.election import Changed, Elector, Sighting
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.leases import LeaseRecord, Leases

_MEMBER = "member-"
_DEAD_DURATIONS = 4  # how many lease durations a dead member's lease is kept

logger = logging.getLogger(__name__)


class Membership:
    """The live replicas, as their own leases show them."""

    def __init__(self, identity: str, leases: Leases, timings: Timings, clock: Clock) -> None:
        # Hashed, because a lease's name allows fewer characters than an identity.
        name = _MEMBER + hashlib.sha256(identity.encode()).hexdigest()[:10]
        self._own = Elector(name, identity, leases, timings, clock)
        self._identity = identity
        self._leases = leases
        self._duration = timings.lease_duration.total_seconds()
        self._retry = timings.lease_retry.total_seconds()
        self._clock = clock
        self._sightings: dict[str, Sighting] = {}
        self._live: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Return how many replicas are seen alive, this one at least."""
        return max(1, len(self._live))

    def is_owner(self, shard: int) -> bool:
        """Tell whether this replica should hold the shard's lease."""
        return owner(shard, self._live) == self._identity

    async def run(self, changed: Callable[[], None]) -> None:
        """Be a member and watch the others until cancelled; `changed` hears who came or went."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._own.run(lambda _: None))
            tasks.create_task(self._watch(changed))

    async def _watch(self, changed: Callable[[], None]) -> None:
        while True:
            before = self._live
            # Whoever cannot see the others keeps its last view: silence proves no death.
            with suppress(CallError, OSError):
                async with asyncio.timeout(self._retry):
                    dead = self._judge(await self._leases.starting_with(_MEMBER))
                    if self._live != before:
                        logger.info("members changed", extra={"members": sorted(self._live)})
                        changed()
                    await self._tidy(dead)
            await asyncio.sleep(self._retry)

    def _judge(self, records: Sequence[LeaseRecord]) -> list[LeaseRecord]:
        """Take a look at all members; return the leases of those that are long dead."""
        now, seen = self._clock.monotonic(), self._sightings
        self._sightings = {each.name: seen.get(each.name, Sighting()) for each in records}
        for each in records:
            self._sightings[each.name].see(each, now, self._duration)
        dead_for = {each.name: now - self._sightings[each.name].free_at for each in records}
        self._live = frozenset(
            each.holder for each in records if each.holder and dead_for[each.name] < 0
        )
        limit = _DEAD_DURATIONS * self._duration
        return [each for each in records if dead_for[each.name] > limit]

    async def _tidy(self, dead: Sequence[LeaseRecord]) -> None:
        for each in dead:
            with suppress(CallError):  # another member was faster, or it lives again
                await self._leases.delete(each)


class Role:
    """What this replica may do; every answer can change from one moment to the next."""

    def __init__(
        self, shards: int, identity: str, leases: Leases, timings: Timings, clock: Clock
    ) -> None:
        elector = partial(Elector, identity=identity, leases=leases, timings=timings, clock=clock)
        # Whoever tidies up needs the fleet view, which only those have who act.
        self.singleton = elector("singleton", wanted=self.acts)
        self._membership: Membership | None = None
        if shards == 1:
            self._shards = [elector("leader")]
        else:
            self._membership = members = Membership(identity, leases, timings, clock)
            self._shards = [
                elector(f"shard-{each}", wanted=partial(members.is_owner, each))
                for each in range(shards)
            ]

    def may_act_for(self, repository: str) -> bool:
        """Tell whether this replica may change anything for a repository's issues now."""
        return self._shards[shard_of(repository, len(self._shards))].holds()

    def in_charge_since(self, repository: str) -> datetime | None:
        """Return since when no other replica can have acted for a repository's issues."""
        elector = self._shards[shard_of(repository, len(self._shards))]
        return elector.held_since if elector.holds() else None

    def held(self) -> dict[str, bool]:
        """Return every lease this replica contests, and whether it holds it now."""
        return {each.name: each.holds() for each in (self.singleton, *self._shards)}

    def replicas(self) -> int:
        """Return how many replicas share what Daytona allows the organisation: those that act."""
        return self._membership.size if self._membership is not None else 1

    def acts(self) -> bool:
        """Tell whether this replica may act for anybody now."""
        return any(each.holds() for each in self._shards)

    async def run(self, changed: Changed) -> None:
        """Contest all leases until cancelled; `changed` hears of shards won and lost."""

        def heard(won: bool) -> None:
            self.singleton.hurry()
            changed(won)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.singleton.run(lambda _: None))
            if self._membership is not None:
                tasks.create_task(self._membership.run(self._hurry))
            for each in self._shards:
                tasks.create_task(each.run(heard))

    def _hurry(self) -> None:
        for each in self._shards:
            each.hurry()
