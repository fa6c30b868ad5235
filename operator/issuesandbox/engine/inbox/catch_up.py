"""Looks for what deliveries did not bring: GitHub sends each event once, and many get lost.

A pass hands what changed since the last one to the same reception as deliveries, so that what was
handled is not handled again. Deliveries that GitHub knows to have failed are asked for once more.
What nobody will ever take is told and passed over; only what may go well later is looked at again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from issuesandbox.domain.webhook.hints import Hint
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.engine.inbox.cursor import Cursor, begin_cursor, write_cursor
from issuesandbox.engine.inbox.finding import Finder, Reach, is_final
from issuesandbox.engine.inbox.reception import Reception, Result
from issuesandbox.ports.errors import CallError, Conflict, NotFound, Throttled, Unavailable
from issuesandbox.ports.github import Delivery
from issuesandbox.ports.resources import EventNote

# Clocks differ, and GitHub's lists lag behind its events.
_OVERLAP = timedelta(minutes=2)
_RETRY = 60.0
_MOST_TOLD = 10_000

logger = logging.getLogger(__name__)


class CatchUp:
    """One pass every so often, mostly by one replica at a time."""

    def __init__(self, reach: Reach, reception: Reception, name: str, every: timedelta) -> None:
        self._reach = reach
        self._reception = reception
        self._finder = Finder(reach, self._refused)
        self._name = name
        self._every = every.total_seconds()
        self._hurried = asyncio.Event()
        self._anyway = False
        self._in_vain = 0
        self._told: set[tuple[str, str]] = set()
        self.found = 0
        self.failures = 0
        self.refused = 0
        self.last_success = 0.0
        """When a pass last went through, in seconds since 1970."""

    def hurry(self, *, anyway: bool = False) -> None:
        """Look now: something changed that no single event tells.

        `anyway` asks for it whoever's turn it is: nobody else may have heard. Two passes at once do
        no harm.
        """
        self._anyway = self._anyway or anyway
        self._hurried.set()

    async def run(self, may_act: Callable[[], bool]) -> None:
        """Take passes until cancelled, while this replica is the one to do so."""
        while True:
            rest = 1.0
            # Before the pass: what happens during it may be behind where it looked.
            self._hurried.clear()
            if (may_act() or self._anyway) and self._reach.index.is_complete():
                rest = await self._take()
            try:
                async with asyncio.timeout(rest):
                    await self._hurried.wait()
            except TimeoutError:
                continue

    async def _take(self) -> float:
        anyway, self._anyway = self._anyway, False
        went_through = await self.look()
        self._anyway = self._anyway or (anyway and not went_through)
        return self.rest_after(went_through)

    def rest_after(self, went_through: bool) -> float:
        """Return how long to rest after a pass; longer each time that it does not go through."""
        self._in_vain = 0 if went_through else self._in_vain + 1
        if went_through:
            return self._every
        return min(self._every, _RETRY * 2.0 ** min(self._in_vain - 1, 16))

    async def look(self) -> bool:
        """Take one pass; tell whether nothing is left that may go well later."""
        began = self._reach.clock.now()
        try:
            cursor = await begin_cursor(self._reach.records, self._name, began)
            complete = await self._repositories(cursor, began)
            complete = await self._deliveries(cursor, began) and complete
            await write_cursor(self._reach.records, self._name, cursor)
        except Conflict:
            return True  # another replica was faster, and did the same
        except CallError as error:
            return self._failed("catch-up", error)
        if complete:
            self.last_success = began.timestamp()
            logger.info("catch-up done", extra={"found": self.found})
        return complete

    async def _repositories(self, cursor: Cursor, began: datetime) -> bool:
        complete = True
        for name in [each.full_name async for each in self._reach.forge.repositories()]:
            rules = self._reception.rules_for(name)
            if rules is None:
                continue
            try:
                whole = await self._repository(name, rules, cursor.since(name, began) - _OVERLAP)
            except CallError as error:
                whole = await self._over(name, error)
            if whole:
                cursor.advance(name, began)
            complete = complete and whole
        if complete:
            cursor.passed = began
        return complete

    async def _repository(self, name: str, rules: Rules, since: datetime) -> bool:
        """Look through one repository; tell whether it is done with."""
        whole = True
        for _, hint in await self._finder.look_through(name, rules, since):
            try:
                await self._handle(name, hint)
            except (Unavailable, Throttled):
                raise  # the next one would fare no better
            except CallError as error:
                # One that cannot be handled must not keep the others from it.
                whole = await self._over(name, error) and whole
        return whole

    async def _handle(self, name: str, hint: Hint) -> None:
        answer = await self._reception.receive(hint)
        if answer.result in (Result.CREATED, Result.CHANGED):
            self.found += 1
            extra = {"repository": name, "resource": answer.resource, "did": answer.reason}
            logger.info("missed event found", extra=extra)

    async def _deliveries(self, cursor: Cursor, began: datetime) -> bool:
        since = (cursor.deliveries or began) - _OVERLAP
        whole = True
        try:
            async for failed in self._reach.forge.failed_deliveries(since):
                whole = await self._again(failed) and whole
        except CallError as error:
            whole = await self._over("deliveries", error)
        if whole:
            cursor.deliveries = began
        return whole

    async def _again(self, failed: Delivery) -> bool:
        try:
            await self._reach.forge.redeliver(failed.id)
        except NotFound:
            return True  # GitHub keeps deliveries for some days only
        except (Unavailable, Throttled):
            raise  # the next one would fare no better
        except CallError as error:
            return await self._over(f"delivery {failed.guid}", error)
        extra = {"delivery": failed.guid, "event": failed.event}
        logger.info("delivery asked for again", extra=extra)
        return True

    async def _over(self, what: str, error: CallError) -> bool:
        """Tell of an error, and whether the matter is closed with it."""
        if not is_final(error):
            return self._failed(what, error)
        await self._refused(what, error)
        return True

    def _failed(self, what: str, error: CallError) -> bool:
        self.failures += 1
        logger.warning("catch-up failed", extra={"what": what, "error": str(error)})
        return False

    async def _refused(self, what: str, error: CallError) -> None:
        """Tell, once in a while, of what is passed over."""
        self.refused += 1
        if (what, str(error)) in self._told:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told.add((what, str(error)))
        logger.error("catch-up refused", extra={"what": what, "error": str(error)})
        message = f"The catch-up passes over something in {what}: {error}"
        try:
            note = EventNote("CatchUpRefused", message, warning=True)
            await self._reach.records.note(self._name, note)
        except CallError as problem:
            logger.warning("event not posted", extra={"error": str(problem)})
