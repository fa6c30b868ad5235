"""Who does the errands of a run: one hand for each part of the work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from issuesandbox.api.status import Comment
from issuesandbox.domain.runs.chapters import Ending, Harvest, Preparation
from issuesandbox.domain.wanted import time_to_save
from issuesandbox.engine.runs.approach import Approach
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import ahead, unattended
from issuesandbox.engine.runs.collecting import Collector
from issuesandbox.engine.runs.following import Follower
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.preparing import prepare
from issuesandbox.engine.runs.publishing import Publisher
from issuesandbox.engine.runs.reporting import Reporter
from issuesandbox.engine.runs.scouting import Scouts
from issuesandbox.engine.runs.sources import Hopeless
from issuesandbox.engine.runs.steps import AgentEnd, Collected, Published, Rescued, Signs
from issuesandbox.ports.errors import CallError, Unavailable
from issuesandbox.ports.resources import ResourceKey

# Of which run, and by which generation of its resource, something is collected.
_Order = tuple[str, int | None]


class Crew:
    """Implements `Steps` on the real outside."""

    def __init__(self, outside: Outside, on_fresh: Callable[[Mapping[str, Any]], None]) -> None:
        self._outside = outside
        self._follower = Follower(outside, on_fresh)
        self._collector = Collector(outside, self._follower)
        self._publisher = Publisher(outside, self._collector)
        self._reporter = Reporter(outside)
        self._scouts = Scouts(outside)
        self._approaches: dict[ResourceKey, Approach] = {}
        self._collecting: dict[ResourceKey, tuple[_Order, asyncio.Task[Harvest | Ending]]] = {}

    def scout(self, assignment: Assignment) -> None:
        """Ask GitHub what a run needs to know, while its sandbox is still on its way."""
        self._scouts.send(assignment)

    def approach(self, assignment: Assignment) -> None:
        """Begin what needs no run that is written down."""
        made = Approach(assignment, self._outside, self._scouts)
        self._approaches[assignment.key] = made

    def recall(self, key: ResourceKey) -> None:
        """Drop what was found out ahead of a run that this replica will not begin."""
        self._scouts.recall(key)

    async def prepare(self, assignment: Assignment) -> Preparation | Ending:
        """Make the sandbox ready for the agent."""
        approach = self._approaches.pop(assignment.key, None)
        if approach is not None and not approach.is_fresh(assignment.sandbox_id):
            approach.give_up()
            approach = None
        approach = approach or Approach(assignment, self._outside, self._scouts)
        try:
            async with (
                ahead(self._follower.keep_fresh(assignment)),
                ahead(self._expect(assignment, approach)),
            ):
                return await prepare(assignment, self._outside, approach)
        finally:
            approach.give_up()
            await approach.ended()

    async def _expect(self, assignment: Assignment, approach: Approach) -> None:
        """Have what the agent needs read meanwhile, as soon as it is known where it will live."""
        self._follower.expect(assignment, (await approach.health).home)

    async def follow(self, assignment: Assignment) -> AgentEnd:
        """Start the agent unless it was started, and follow it to its end."""
        try:
            end = await self._follower.follow(assignment)
        except Hopeless as error:
            # An operator that went away may have started it without writing that down.
            return AgentEnd(None, str(error), error.ending, sure=False)
        return end if end.ending is not None else await self._with_quick_collection(assignment, end)

    async def _with_quick_collection(self, assignment: Assignment, end: AgentEnd) -> AgentEnd:
        """Begin to collect: what is there in a moment is written down together with the end."""
        collecting = unattended(self._collect(assignment))
        try:
            seconds = self._outside.timings.quick_collection.total_seconds()
            await asyncio.wait((collecting,), timeout=seconds)
        except asyncio.CancelledError:
            collecting.cancel()
            raise
        if collecting.done() and collecting.exception() is None:
            generation = assignment.resource.metadata.generation
            return replace(end, collected=Collected(collecting.result(), generation))
        self._collecting[assignment.key] = (_order_of(assignment), collecting)
        return end

    def signs(self, key: ResourceKey) -> Signs | None:
        """Return the signs of life of the agent that is followed."""
        return self._follower.signs(key)

    def heard(self, assignment: Assignment) -> Harvest | None:
        """Return what is known of an agent that nobody can ask any more."""
        return self._follower.heard(assignment)

    async def kill(self, assignment: Assignment) -> None:
        """Kill the agent and all that descends from it."""
        await self._follower.kill(assignment)

    async def collect(self, assignment: Assignment) -> Harvest | Ending:
        """Make one commit of what the agent left, and have it ready for the push."""
        order, begun = self._collecting.pop(assignment.key, (None, None))
        async with ahead(self._follower.keep_fresh(assignment)):
            if begun is not None and order == _order_of(assignment):
                return await begun
            if begun is not None:
                begun.cancel()
            return await self._collect(assignment)

    async def _collect(self, assignment: Assignment) -> Harvest | Ending:
        if not assignment.publishes:
            return await self._collector.collect(assignment)
        async with ahead(self._publisher.authorize(assignment)) as refusal:
            found = await self._collector.collect(assignment)
            if isinstance(found, Ending) or found.commit is None:
                return found
            return await refusal or found

    async def publish(self, assignment: Assignment) -> Published:
        """Send the push that was decided, then open or update the pull request."""
        return await self._publisher.publish(assignment)

    async def rescue(self, assignment: Assignment) -> Rescued:
        """Kill what is left of the agent and save its work."""
        limit = time_to_save(assignment.resource, self._outside.timings).total_seconds()
        try:
            async with asyncio.timeout(limit):
                if assignment.run.change_totals is None:
                    # What was collected was left by an agent that is dead.
                    with suppress(CallError):
                        await self._follower.kill(assignment)
                return await self._publisher.rescue(assignment)
        except TimeoutError:
            raise Unavailable(f"the work could not be saved within {limit:g} s") from None

    async def salvage(self, assignment: Assignment) -> Rescued:
        """Save the work of a run that goes on elsewhere, if its sandbox still answers."""
        limit = self._outside.timings.probe_timeout.total_seconds()
        try:
            async with asyncio.timeout(limit):
                await self._outside.toolbox.home(assignment.sandbox_id)
        except TimeoutError:
            raise Unavailable(f"the sandbox did not answer within {limit:g} s") from None
        return await self.rescue(assignment)

    async def tell(self, assignment: Assignment) -> Comment | None:
        """Write the one comment on the issue."""
        activity = self._follower.activity(assignment.key)
        return await self._reporter.tell(assignment, activity)

    def digest(self, assignment: Assignment) -> str:
        """Return the fingerprint of what the comment should say; empty if there is none."""
        return self._reporter.digest(assignment)

    def forget(self, key: ResourceKey) -> None:
        """Drop what is remembered of a resource."""
        if key in self._approaches:
            self._approaches.pop(key).give_up()
        if key in self._collecting:
            self._collecting.pop(key)[1].cancel()
        self._follower.forget(key)
        self._collector.forget(key)
        self._publisher.forget(key)


def _order_of(assignment: Assignment) -> _Order:
    return assignment.run.id, assignment.resource.metadata.generation
