"""The fleet view: one periodic list of our own sandboxes, shared by all passes.

A hint that says where to look, never evidence. A view is published whole or not at all; one
that is too old says nothing any more. Knows nothing of resources.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from types import MappingProxyType
from typing import TypeVar

from issuesandbox.api.names import LABEL_UID
from issuesandbox.clock import Clock
from issuesandbox.domain.naming import installation_labels, is_from_elsewhere
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.states import Sight, sight_of
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.sandboxes import Sandboxes

logger = logging.getLogger(__name__)

T = TypeVar("T")
Compare = Callable[[str, tuple[SandboxView, ...]], None]
_AT_ONCE = 500
# Everybody in an ordinary installation. Whoever is told asks every 15 s until there is an answer:
# in a huge one that would be a storm on a platform that is down.
_TOLD_OF_AN_OUTAGE = 500
# Not one whose build failed: that is the order's fault, however many ordered the same.
_BROKEN = frozenset({Sight.BROKEN, Sight.RECOVERABLE})


@dataclass(frozen=True, slots=True)
class FleetView:
    """All our sandboxes as one complete list showed them, by the uid of their resource."""

    taken_at: float
    by_uid: Mapping[str, tuple[SandboxView, ...]]
    size: int
    broken: Mapping[str, frozenset[SandboxId]]
    """The broken sandboxes of each resource that has any."""
    elsewhere: int = 0
    """How many have our id, but were made by an operator that lives elsewhere."""


class Fleet:
    """Reads the fleet view each tick and wakes the resources whose sandbox changed."""

    def __init__(
        self,
        sandboxes: Sandboxes,
        installation: str,
        timings: Timings,
        clock: Clock,
        is_needed: Callable[[], bool] = lambda: True,
        home: str = "",
    ) -> None:
        self.home = home
        self._sandboxes = sandboxes
        self._labels = installation_labels(installation)
        self._timings = timings
        self._clock = clock
        self._is_needed = is_needed
        self._hurry = asyncio.Event()
        self._view: FleetView | None = None
        self._outage_told = False
        self._asked_since: float | None = None
        self._looked_at: dict[str, tuple[float, bool]] = {}
        self.failures = 0

    @property
    def view(self) -> FleetView | None:
        """Return the last complete view, unless it is too old to say anything."""
        if self._view is None:
            return None
        age = self._clock.monotonic() - self._view.taken_at
        return self._view if age <= self._timings.fleet_stale.total_seconds() else None

    @property
    def age(self) -> float | None:
        """Return how many seconds ago the last complete view was read, or first asked for.

        None on a replica that never had to ask.
        """
        since = self._asked_since if self._view is None else self._view.taken_at
        return None if since is None else self._clock.monotonic() - since

    @property
    def elsewhere(self) -> int:
        """Return how many sandboxes with our id another operator made, as last seen."""
        return 0 if self._view is None else self._view.elsewhere

    def hurry(self) -> None:
        """Read the next view now instead of at the next tick."""
        self._hurry.set()

    def expect(self, uid: str, *, found: bool = True) -> None:
        """Take note that a sandbox was just looked at: the next view may not show the same.

        One that no view ever showed would not be missed by any, and one that is known to be
        missing is no news.
        """
        self._looked_at[uid] = self._clock.monotonic(), found

    async def run(self, wake: Callable[[str], None], compare: Compare | None = None) -> None:
        """Read a view each tick until cancelled; `wake` gets each uid that has to look itself.

        Most changes are our own, and no news to the resource by the time they are listed: with
        `compare` it is shown what a view has of it, and tells for itself. A replica that
        may not act reads none: its first act would need a fresh one anyway.
        """
        while True:
            self._hurry.clear()
            if self._is_needed():
                await self.refresh(wake, compare)
            # Jitter keeps the operators of an organisation from listing in step.
            tick = self._timings.fleet_tick.total_seconds() * random.uniform(0.9, 1.1)  # noqa: S311
            with suppress(TimeoutError):
                async with asyncio.timeout(tick):
                    await self._hurry.wait()

    async def refresh(self, wake: Callable[[str], None], compare: Compare | None = None) -> None:
        """Read one view; if any page fails the old view stays and grows older."""
        started = self._clock.monotonic()
        self._asked_since = self._asked_since or started
        try:
            listed = await self._sandboxes.list_owned(self._labels)
        except CallError as error:
            self.failures += 1
            if self.failures == 1:
                logger.warning("fleet view failed", extra={"error": str(error)})
            self._tell_outage(wake, started)
            return
        if self.failures:
            logger.info("fleet view is back", extra={"failures": self.failures})
        self.failures = 0
        self._outage_told = False
        before, was_blind = self._view, self.view is None
        by_uid, broken = await _grouped(listed)
        elsewhere = 0
        async for some in _gently(listed):
            elsewhere += sum(is_from_elsewhere(each.labels, self.home) for each in some)
        self._view = FleetView(
            started, MappingProxyType(by_uid), len(listed), MappingProxyType(broken), elsewhere
        )
        # The first view is news of everybody, whose first passes are due anyway.
        changed = await _changed(before.by_uid, by_uid) if before is not None else set[str]()
        found = dict(self._expected(started))
        async for some_uids in _gently(changed | found.keys()):
            for uid in some_uids:
                shown = by_uid.get(uid, ())
                if not shown and not found.get(uid, True):
                    continue
                if compare is None:
                    wake(uid)
                else:
                    compare(uid, shown)
        # What is broken is replaced only by whoever knows how many are.
        for uid in broken if was_blind else ():
            wake(uid)

    def _expected(self, started: float) -> Iterator[tuple[str, bool]]:
        """Yield, once, who was looked at before a list began, and whether it was found.

        What came later the list may not show.
        """
        for uid, (at, found) in tuple(self._looked_at.items()):
            if at < started:
                del self._looked_at[uid]
                yield uid, found

    def _tell_outage(self, wake: Callable[[str], None], started: float) -> None:
        """Wake those who rest once the last view is too old: their status must say so.

        As long as there is none, they look for themselves at each tick.
        """
        if self.view is not None:
            return
        resting = () if self._view is None or self._outage_told else self._view.by_uid
        self._outage_told = self._view is not None
        looked_at = (uid for uid, _ in self._expected(started))
        for uid in islice(chain(looked_at, resting), _TOLD_OF_AN_OUTAGE):
            wake(uid)


Groups = Mapping[str, tuple[SandboxView, ...]]


async def _grouped(
    listed: Sequence[SandboxView],
) -> tuple[dict[str, tuple[SandboxView, ...]], dict[str, frozenset[SandboxId]]]:
    """Return the sandboxes by the uid of their resource, and the broken ones among them."""
    grouped: dict[str, tuple[SandboxView, ...]] = {}
    broken: dict[str, frozenset[SandboxId]] = {}
    async for some in _gently(listed):
        for sandbox in some:
            uid = sandbox.labels.get(LABEL_UID)
            if uid:
                grouped[uid] = (*grouped.get(uid, ()), sandbox)
                if sight_of(sandbox) in _BROKEN:
                    broken[uid] = broken.get(uid, frozenset()) | {sandbox.id}
    return grouped, broken


async def _changed(old: Groups, new: Groups) -> set[str]:
    changed = set(old.keys() ^ new.keys())
    async for some in _gently(old.keys() & new.keys()):
        for uid in some:
            before, now = old[uid], new[uid]
            # What did not change at all is the same object.
            if before != now and _states(before) != _states(now):
                changed.add(uid)
    return changed


def _states(sandboxes: tuple[SandboxView, ...]) -> list[tuple[str, str | None]]:
    return [(each.id, each.state) for each in sandboxes]


async def _gently(items: Iterable[T]) -> AsyncIterator[tuple[T, ...]]:
    """Yield some of the items at a time, and let others run in between."""
    left = iter(items)
    while some := tuple(islice(left, _AT_ONCE)):
        yield some
        await asyncio.sleep(0)
