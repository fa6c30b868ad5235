"""Carries out an order on the resource of an issue, however many do so at once.

Look, decide, write under the version looked at; if somebody wrote in between, look again. Knows
nothing of deliveries, people or policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from issuesandbox.clock import Clock
from issuesandbox.domain.webhook.answers import was_done
from issuesandbox.domain.webhook.commands import MARKER
from issuesandbox.domain.webhook.hints import Happening
from issuesandbox.domain.webhook.judge import SLACK, event_trigger
from issuesandbox.domain.webhook.live import Path, read_live
from issuesandbox.domain.webhook.orders import Act, Order, StopReason
from issuesandbox.domain.webhook.plan import Nothing, Question, as_it_is, is_newer, plan, plan_new
from issuesandbox.domain.webhook.render import render_change, render_new
from issuesandbox.domain.webhook.resource_names import resource_name
from issuesandbox.domain.webhook.stamps import Stamp
from issuesandbox.engine.inbox.facts import facts_of
from issuesandbox.engine.inbox.index import IssueIndex
from issuesandbox.ports.errors import Busy, Conflict, Invalid, NotFound, Unavailable
from issuesandbox.ports.github import Forge, GitHub, IssueEvent
from issuesandbox.ports.inbox import Applied
from issuesandbox.ports.resources import ResourceKey

_TRIES = 20
# What is older may have been carried out on a resource that is gone by now.
_FRESH = timedelta(minutes=1)
# By so much an issue's own time, as a delivery tells it, may be behind the entry in its history.
_LAG = timedelta(seconds=10)


class Effect(StrEnum):
    """What became of an order."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    ABSENT = "absent"


class Done(Struct, frozen=True):
    """What was done, and to which resource."""

    effect: Effect
    name: str = ""
    namespace: str = ""
    reason: str = ""
    held: tuple[Path, ...] = ()
    """Fields that somebody set by hand and that stay as they are."""


class Place(Struct, frozen=True):
    """Where the resource of an issue is or shall be, and from what it is made."""

    repository: str
    number: int
    namespace: str
    template: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the name of a resource that the adapter makes."""
        return resource_name(self.repository, self.number)


class Desk:
    """Writes to resources, one order at a time per call, any number of calls at once."""

    def __init__(
        self,
        resources: Applied,
        index: IssueIndex,
        github: GitHub,
        forge: Forge,
        clock: Clock,
        by_global_id: bool = False,
    ) -> None:
        self._resources = resources
        self._index = index
        self._github = github
        self._forge = forge
        self._clock = clock
        self._by_global_id = by_global_id

    async def carry_out(self, order: Order, place: Place) -> Done:
        """Carry out an order on the resource of an issue, or make that resource."""
        known = self.known(order, place)
        if known is not None:
            return known
        if self.is_late(order.stamp):
            order = replace(order, is_late=True)
        for _ in range(_TRIES):
            body = await self.find(place)
            try:
                if body is None:
                    return await self._make(order, place)
                return await self._change(order, place, body)
            except Conflict:
                continue  # somebody was faster: look again
            except _Asked as asked:
                order = await self._answered(order, place, asked.question)
        raise Unavailable(f"{place.repository}#{place.number} changes all the time")

    def known(self, order: Order, place: Place) -> Done | None:
        """Tell of an order that the resource has had already; None: it must be looked at."""
        hint = self._index.owner(place.repository, place.number)
        if hint is None or not isinstance(planned := plan(hint, order), Nothing):
            return None
        # What is known only grows: a stale view that knows it already is right.
        return Done(Effect.UNCHANGED, hint.name, hint.namespace, planned.reason)

    def is_late(self, stamp: Stamp) -> bool:
        """Tell whether something is heard so late that its resource may be gone by now."""
        return self._clock.now() - stamp.at > _FRESH

    async def find(self, place: Place) -> Mapping[str, Any] | None:
        """Return the resource that owns an issue, as it is now."""
        hint = self._index.owner(place.repository, place.number)
        places = [(place.namespace, place.name)]
        if hint is not None and (hint.namespace, hint.name) not in places:
            places.insert(0, (hint.namespace, hint.name))
        for namespace, name in places:
            try:
                body = await self._resources.get(namespace, name)
            except NotFound:
                continue
            live = read_live(body)
            if (live.repository, live.number) == (place.repository.lower(), place.number):
                return body
            if name == place.name:
                text = f"{namespace}/{name} stands for {live.repository}#{live.number}"
                raise Invalid(f"{text} and is in the way of its namesake: delete it")
        return None

    async def keep(self, place: Place) -> Done:
        """Mark a resource so that it outlives its run."""
        for _ in range(_TRIES):
            body = await self.find(place)
            if body is None:
                return Done(Effect.ABSENT)
            live = read_live(body)
            applied, _held = render_change(as_it_is(live), body, place.template, keep=True)
            try:
                await self._resources.apply(applied)
            except Conflict:
                continue
            return Done(Effect.CHANGED, live.name, live.namespace)
        raise Unavailable(f"{place.repository}#{place.number} changes all the time")

    async def delete(self, place: Place, stamp: Stamp) -> Done:
        """Ask for the deletion of a resource; the operator cleans up behind it."""
        for _ in range(_TRIES):
            body = await self.find(place)
            if body is None:
                return Done(Effect.ABSENT)
            live = read_live(body)
            if is_newer(live, stamp):
                reason = "something newer was ordered since"
                return Done(Effect.UNCHANGED, live.name, live.namespace, reason)
            key = ResourceKey(live.namespace, live.name, live.uid)
            try:
                await self._resources.delete(key, live.version)
            except Conflict:
                continue  # somebody wrote, perhaps a newer order: look again
            except NotFound:
                return Done(Effect.ABSENT)
            return Done(Effect.CHANGED, live.name, live.namespace)
        raise Unavailable(f"{place.repository}#{place.number} changes all the time")

    async def _make(self, order: Order, place: Place) -> Done:
        change = plan_new(order)
        if isinstance(change, Question):
            raise _Asked(change)
        if isinstance(change, Nothing):
            effect = Effect.UNCHANGED if order.was_done else Effect.ABSENT
            return Done(effect, place.name, place.namespace, change.reason)
        where = (place.namespace, place.name)
        body = render_new(change, where, place.template, self._by_global_id)
        self._index.put(await self._resources.create(body))
        return Done(Effect.CREATED, place.name, place.namespace)

    async def _change(self, order: Order, place: Place, body: Mapping[str, Any]) -> Done:
        live = read_live(body)
        if live.is_deleting:
            if order.act is Act.START:
                raise Busy(f"{live.namespace}/{live.name} is being deleted; send it again later")
            return Done(Effect.ABSENT, reason="its resource is being deleted")
        change = plan(live, order)
        if isinstance(change, Question):
            raise _Asked(change)
        if isinstance(change, Nothing):
            return Done(Effect.UNCHANGED, live.name, live.namespace, change.reason)
        applied, held = render_change(change, body, place.template)
        self._index.put(await self._resources.apply(applied))
        return Done(Effect.CHANGED, live.name, live.namespace, held=held)

    async def _answered(self, order: Order, place: Place, question: Question) -> Order:
        if question is Question.EVENT:
            event = await self._event(order, place)
            assert order.happening is not None
            return replace(
                order,
                trigger=event_trigger(order.happening, event.id),
                stamp=Stamp(event.created_at, event.id),
            )
        if question is Question.PAST:
            own = await self._github.comments(place.repository, place.number, MARKER)
            # The comment of a run is made once and then edited: its last word counts.
            said = ((each.body, each.updated_at or each.created_at) for each in own)
            return replace(order, was_done=was_done(order.stamp, said))
        try:
            now = facts_of(await self._github.issue(place.repository, place.number))
        except NotFound:
            return Order(Act.STOP, order.stamp, reason=StopReason.GONE)
        kept = order.issue is None or order.is_pinned
        return replace(order, now=now, issue=order.issue if kept else now)

    async def _event(self, order: Order, place: Place) -> IssueEvent:
        happening = order.happening or Happening.EDITED
        listed = await self._forge.issue_events(place.repository, place.number)
        # The list may lag behind: an older entry of the same kind is another event.
        earliest, latest = order.stamp.at - _LAG, order.stamp.at + SLACK
        found = [
            each
            for each in listed
            if each.event == happening
            and each.subject.lower() == order.subject.lower()
            and earliest <= each.created_at <= latest
        ]
        if not found:
            where = f"{place.repository}#{place.number}"
            raise Unavailable(f"GitHub's history of {where} does not show {happening} yet")
        return max(found, key=lambda each: (each.created_at, each.id))


class _Asked(Exception):
    """An order cannot be carried out before a question is answered."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.value)
        self.question = question
