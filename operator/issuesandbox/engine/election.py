"""One lease: contest it, renew it, lose it, release it.

Two replicas never hold a lease at once, however slow, frozen or cut off they are. Their wall
clocks are never compared: whoever waits measures, on its own monotonic clock, for how long it
saw no change; whoever holds counts from before its renewal was sent, and stops sooner than the
others may start. Knows nothing of what the holder does.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from issuesandbox.clock import Clock
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import CallError, Conflict, NotFound
from issuesandbox.ports.leases import LeaseRecord, Leases

Changed = Callable[[bool], None]
_Answer = TypeVar("_Answer")

logger = logging.getLogger(__name__)


def unique_identity(host: str) -> str:
    """Return a holder's name that no other process has, restarts of this one included."""
    return f"{host}_{secrets.token_hex(4)}"


@dataclass(slots=True)
class Sighting:
    """When a lease becomes free, judged by the changes this process saw."""

    version: str | None = None
    free_at: float = -math.inf

    def see(self, record: LeaseRecord | None, now: float, duration: float) -> None:
        """Take one look; None is a lease that does not exist."""
        first, version = self.version is None, record.version if record is not None else ""
        if version == self.version:
            return
        self.version = version
        if record is None:
            # Deleted by hand: its holder goes on until it notices.
            self.free_at = now if first else now + duration
        else:
            self.free_at = now + (record.duration or duration) if record.holder else now


class Elector:
    """One replica's hold on one lease."""

    def __init__(
        self,
        name: str,
        identity: str,
        leases: Leases,
        timings: Timings,
        clock: Clock,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name = name
        self._identity = identity
        self._leases = leases
        self._duration = timings.lease_duration.total_seconds()
        self._hold = timings.lease_hold.total_seconds()
        self._retry = timings.lease_retry.total_seconds()
        self._clock = clock
        self._wanted = wanted
        self._deadline = -math.inf
        self._written: LeaseRecord | None = None
        self._sighting = Sighting()
        self._acquired = asyncio.Event()
        self._lapsed = False
        self._hurried = asyncio.Event()
        self.held_since: datetime | None = None
        """When the present or last hold began; between two of them others may have acted."""
        self.failures = 0

    def holds(self) -> bool:
        """Tell whether this replica may act now; asked right before every mutating call."""
        return self._clock.monotonic() < self._deadline

    async def acquired(self) -> None:
        """Wait until the lease is won; it can be lost again at any time."""
        await self._acquired.wait()

    def hurry(self) -> None:
        """Look at the lease now: whether it is wanted may have changed."""
        self._hurried.set()

    async def run(self, changed: Changed) -> None:
        """Contest the lease until cancelled, then release it; `changed` hears wins and losses."""
        try:
            while True:
                began = self._clock.monotonic()
                await self._attempt()
                self._notice(changed)
                await self._rest(began)
                self._notice(changed)
        finally:
            await self._leave()
            self._notice(changed)

    async def _attempt(self) -> None:
        try:
            await self._contest()
        except Conflict:
            self._written = None  # another replica was faster
        except (CallError, OSError) as error:
            # What was sent may have landed or may land yet: look before the next write.
            self._written = None
            self.failures += 1
            if self.failures == 1:
                logger.warning("lease out of reach", extra=self._about(error=_words(error)))
            return
        if self.failures:
            logger.info("lease within reach again", extra=self._about(failures=self.failures))
        self.failures = 0

    async def _contest(self) -> None:
        if not self._wanted():
            await self._give_back()
            return
        if self._written is not None and self.holds():
            try:
                await self._claim(self._written)
                return
            except Conflict:
                self._written = None
        record = await self._look()
        if record is None and self.holds():
            await self._claim(None)  # deleted by hand under its holder
        elif self._is_mine(record) or self._clock.monotonic() >= self._sighting.free_at:
            await self._claim(record)

    async def _look(self) -> LeaseRecord | None:
        try:
            record = await self._call(self._leases.get(self.name))
        except NotFound:
            record = None
        self._sighting.see(record, self._clock.monotonic(), self._duration)
        if record is not None and not self._is_mine(record):
            self._drop()
        return record

    async def _claim(self, record: LeaseRecord | None) -> None:
        sent = self._clock.monotonic()
        send = self._leases.create if record is None else self._leases.replace
        self._written = await self._call(send(self._claim_on(record)))
        if not self.holds():
            # Whoever asked meanwhile was told no, and waits to hear that it is yes again.
            self._lapsed, self.held_since = True, self._clock.now()
        self._deadline = sent + self._hold
        self._sighting.see(self._written, self._clock.monotonic(), self._duration)

    def _claim_on(self, record: LeaseRecord | None) -> LeaseRecord:
        now = self._clock.now()
        if record is not None and self._is_mine(record):
            if now == record.renewed_at:
                # The API server drops a write that changes nothing; the others would see none.
                now += timedelta(microseconds=1)
            return replace(record, duration=self._duration, renewed_at=now)
        base = record or LeaseRecord(name=self.name, transitions=-1)
        return replace(
            base,
            holder=self._identity,
            duration=self._duration,
            acquired_at=now,
            renewed_at=now,
            transitions=base.transitions + 1,
        )

    async def _give_back(self) -> None:
        self._drop()
        record = await self._look()
        if record is not None and self._is_mine(record):
            await self._call(self._leases.replace(replace(record, holder="")))

    async def _leave(self) -> None:
        """Free the lease so that nobody has to wait for its end."""
        try:
            async with asyncio.timeout(self._retry):
                while True:
                    try:
                        return await self._give_back()
                    except Conflict:
                        continue  # the renewal that was cut off landed after all
        except (CallError, OSError) as error:
            logger.warning("lease not released", extra=self._about(error=_words(error)))

    async def _call(self, request: Awaitable[_Answer]) -> _Answer:
        """Wait for an answer, but never beyond the moment the lease is lost."""
        limit = self._retry
        if self.holds():
            limit = min(limit, self._deadline - self._clock.monotonic())
        async with asyncio.timeout(limit):
            return await request

    async def _rest(self, began: float) -> None:
        now = self._clock.monotonic()
        due = began + self._retry
        if self.holds():
            due = min(due, self._deadline)
        elif now < self._sighting.free_at:
            due = min(due, self._sighting.free_at)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, due - now)):
                await self._hurried.wait()
        self._hurried.clear()

    def _drop(self) -> None:
        self._deadline, self._written = -math.inf, None

    def _notice(self, changed: Changed) -> None:
        held, lapsed, self._lapsed = self.holds(), self._lapsed, False
        if self._acquired.is_set() and (lapsed or not held):
            self._acquired.clear()
            logger.info("lease lost", extra=self._about())
            changed(False)
        if held and not self._acquired.is_set():
            self._acquired.set()
            logger.info("lease won", extra=self._about())
            changed(True)

    def _is_mine(self, record: LeaseRecord | None) -> bool:
        return record is not None and record.holder == self._identity

    def _about(self, **more: object) -> dict[str, object]:
        return {"lease": self.name, "identity": self._identity, **more}


def _words(error: Exception) -> str:
    return str(error) or "no answer in time"
