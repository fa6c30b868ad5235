"""Looking at Daytona for one resource: first the fleet view, then, where it matters, a GET.

Turns answers and failures into observations; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from issuesandbox.api.names import LABEL_NAMESPACE, LABEL_RESOURCE, LABEL_UID
from issuesandbox.clock import Clock
from issuesandbox.domain.model import PACED, Desired, Holder, Observed, Paced, Plan
from issuesandbox.domain.naming import Ownership, suffixed_name
from issuesandbox.domain.sandbox import (
    THROTTLED,
    Absent,
    Present,
    SandboxId,
    SandboxView,
    Unknown,
)
from issuesandbox.domain.states import Sight, is_live, sight_of
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.organization import Homes, KeyCheck, WrongOrganization
from issuesandbox.engine.setbacks import with_next_step
from issuesandbox.ports.errors import CallError, Denied, NotFound, Throttled
from issuesandbox.ports.resources import ResourceKey, Resources
from issuesandbox.ports.sandboxes import Sandboxes


@dataclass(slots=True)
class _Sightings:
    """What this process saw itself; it may delay a step, never cause one."""

    absent: SandboxId | None = None
    """Which sandbox, by its id where it is known, the absence below is of."""
    absent_since: float | None = None
    held_since: float | None = None
    """Since when others hold the name."""
    create_at: datetime | None = None
    create_since: float = 0.0
    unseen_stops: tuple[float, float] | None = None
    """When stops were first and last sent without a state to see, before or since."""
    sent: tuple[Plan, str | None, float] | None = None
    """What was sent last, in which state of the sandbox, and until when it is not sent again."""


@dataclass(frozen=True, slots=True)
class Guards:
    """What is known of all resources together, and keeps a single one from harm."""

    homes: Homes
    breaker: Callable[[], str | None]
    """Tells why nothing that is broken may be replaced now."""


class Observer:
    """The eyes of a pass."""

    def __init__(
        self,
        sandboxes: Sandboxes,
        resources: Resources,
        fleet: Fleet,
        clock: Clock,
        timings: Timings,
        guards: Guards,
    ) -> None:
        self._breaker = guards.breaker
        self._key = KeyCheck(sandboxes, guards.homes, clock, timings)
        self._sandboxes = sandboxes
        self._resources = resources
        self._fleet = fleet
        self._clock = clock
        self._timings = timings
        self._sightings: dict[ResourceKey, _Sightings] = {}
        self._doubted: set[ResourceKey] = set()

    def forget(self, key: ResourceKey) -> None:
        """Drop what was seen for a resource that is gone."""
        self._sightings.pop(key, None)
        self._doubted.discard(key)

    def settle(self, key: ResourceKey, desired: Desired) -> None:
        """Take note that no create is open: one that shows up later counts from then on.

        A status can be wiped: the announcement of the first create then shows up again, though
        a later create, of which nothing is left, may be on its way.
        """
        sightings = self._sightings.get(key)
        if sightings is not None and desired.last_create_at is None:
            sightings.create_at = None

    def keys_changed(self) -> None:
        """Start anew with what may have been seen with another key, calls under way included."""
        self._key.changed()
        for sightings in self._sightings.values():
            sightings.absent_since = sightings.held_since = None

    def doubt(self, key: ResourceKey) -> None:
        """Take note that the fleet view may be wrong: the next look must be at Daytona itself."""
        self._doubted.add(key)

    def expect(self, key: ResourceKey, observed: Observed) -> None:
        """Have what was just seen at Daytona compared with the next fleet view."""
        if observed.evidence and not isinstance(observed.sandbox, Unknown):
            self._fleet.expect(key.uid, found=isinstance(observed.sandbox, Present))

    def stops_unseen(self, key: ResourceKey) -> None:
        """Take note of a stop whose effect nobody sees, so that it is not sent all the time."""
        sightings, now = self._sightings.setdefault(key, _Sightings()), self._clock.monotonic()
        first, _ = sightings.unseen_stops or (now, now)
        sightings.unseen_stops = first, now

    def pace(self, key: ResourceKey, plan: Plan, observed: Observed) -> None:
        """Take note of a change that was sent: it is sent again only when its plan says so."""
        seen, change = observed.sandbox, plan.change
        if plan.next_check is None or change is None or not isinstance(seen, Present):
            return
        if change.kind not in PACED:
            return
        until = self._clock.monotonic() + plan.next_check.total_seconds()
        self._sightings.setdefault(key, _Sightings()).sent = (plan, seen.sandbox.state, until)

    def glance(self, key: ResourceKey, desired: Desired) -> Observed | None:
        """Return what the fleet view shows, or None where only a GET can tell."""
        if key in self._doubted or self._is_missed(key):
            return None
        view = self._fleet.view
        known = desired.memory.sandbox_id
        if view is None or known is None:
            return None
        if any(each.id != known for each in self._shown(desired)):
            return None
        for sandbox in view.by_uid.get(desired.identity.uid, ()):
            # A list may flap: what differs from the last evidence needs new evidence.
            if sandbox.id == known and sandbox.state == desired.memory.state:
                return Observed(Present(sandbox))
        return None

    def _is_missed(self, key: ResourceKey) -> bool:
        """Tell whether Daytona itself did not show it; a view may be older than that."""
        sightings = self._sightings.get(key)
        return sightings is not None and sightings.absent_since is not None

    async def foresee(self, desired: Desired) -> Observed | None:
        """Return why a resource's first sandbox may be out of sight once it is made, if so."""
        try:
            await self.check_organization(desired)
        except CallError as error:
            return Observed(_unknown(error))
        return None

    async def look(self, key: ResourceKey, desired: Desired) -> Observed:
        """Return what Daytona itself says right now."""
        sightings = self._sightings.setdefault(key, _Sightings())
        # Before the call: a doubt that comes up during it may be newer than its answer.
        self._doubted.discard(key)
        keys_used = self._key.keys_used
        try:
            sandbox = await self._find(desired)
            holder = await self._holder(desired, sandbox) if sandbox is not None else Holder.OURS
            if sandbox is None or holder is not Holder.OURS:
                await self.check_organization(desired)
            self._key.same(keys_used)
        except CallError as error:
            return self._with_unseen_stops(sightings, Observed(_unknown(error), evidence=True))
        if sandbox is None or sight_of(sandbox) is not Sight.STRANGE:
            sightings.unseen_stops = None
        observed = Observed(
            Present(sandbox) if sandbox is not None else Absent(),
            evidence=True,
            holder=holder,
            fleet_is_clear=self._fleet_is_clear(desired),
            absent_for=self._absence(sightings, desired, sandbox, holder),
            held_for=self._held_for(sightings, holder),
            strays=tuple(
                each.id
                for each in self._shown(desired)
                if sandbox is not None and each.id != sandbox.id
            ),
            create_age=self._create_age(sightings, desired),
            breaker=self._breaker(),
            paced=self._paced(sightings),
        )
        return self._with_unseen_stops(sightings, observed)

    def _absence(
        self,
        sightings: _Sightings,
        desired: Desired,
        found: SandboxView | None,
        holder: Holder,
    ) -> timedelta | None:
        """Return for how long nothing of ours has been seen; a namesake is nothing of ours."""
        known = desired.memory.sandbox_id
        if found is not None and (holder is Holder.OURS or found.id == known):
            sightings.absent_since = None
            return None
        now = self._clock.monotonic()
        if sightings.absent_since is None or sightings.absent != known:
            sightings.absent, sightings.absent_since = known, now
        return timedelta(seconds=now - sightings.absent_since)

    def _held_for(self, sightings: _Sightings, holder: Holder) -> timedelta | None:
        if holder is Holder.OURS:
            sightings.held_since = None
            return None
        now = self._clock.monotonic()
        if sightings.held_since is None:
            sightings.held_since = now
        return timedelta(seconds=now - sightings.held_since)

    def _with_unseen_stops(self, sightings: _Sightings, observed: Observed) -> Observed:
        if sightings.unseen_stops is None:
            return observed
        first, last = sightings.unseen_stops
        return replace(
            observed,
            unseen_stop_for=timedelta(seconds=self._clock.monotonic() - last),
            unseen_stops_took=timedelta(seconds=last - first),
        )

    def _paced(self, sightings: _Sightings) -> Paced | None:
        if sightings.sent is None:
            return None
        plan, state, until = sightings.sent
        left = timedelta(seconds=until - self._clock.monotonic())
        return Paced(plan, state, left) if left > timedelta(0) else None

    async def check_organization(self, desired: Desired) -> None:
        """Raise unless an absence counts: another organisation's key sees nothing of ours.

        It may see a namesake, though.
        """
        await self._key.check(desired.memory.organization_id)

    async def _holder(self, desired: Desired, sandbox: SandboxView) -> Holder:
        if _is_ours(desired, sandbox):
            return Holder.OURS
        if desired.identity.ownership(sandbox.labels) is Ownership.FOREIGN:
            return Holder.FOREIGN
        names = (LABEL_NAMESPACE, LABEL_RESOURCE, LABEL_UID)
        other = ResourceKey(*(sandbox.labels.get(name, "") for name in names))
        return Holder.TWIN if await self._lives(other) else Holder.LEFTOVER

    async def _lives(self, key: ResourceKey) -> bool:
        try:
            body = await self._resources.get(key)
        except NotFound:
            return False
        except CallError as error:
            # It is not Daytona that does not answer.
            raise HolderUnknown(
                f"the API server does not show {key.namespace}/{key.name}, the resource that the "
                f"labels of the sandbox name: {error}"
            ) from error
        return bool(body["metadata"]["uid"] == key.uid)

    async def _find(self, desired: Desired) -> SandboxView | None:
        """Return our sandbox wherever it is, else whoever holds its name, else None."""
        stranger: SandboxView | None = None
        for reference in self._references(desired):
            try:
                found = await self._sandboxes.get(reference)
            except NotFound:
                continue
            if found.state == "destroyed":
                continue
            if _is_ours(desired, found):
                return found
            stranger = stranger or (found if reference == desired.name else None)
        return stranger

    def _references(self, desired: Desired) -> list[str]:
        """Return where the sandbox may be: its id, its names, and what the fleet view shows.

        A status can be lost, so the name it chose may not be known any more.
        """
        memory, name = desired.memory, desired.name
        references: list[str] = [memory.sandbox_id] if memory.sandbox_id is not None else []
        references.append(name)
        if memory.sandbox_id is None:
            references.append(suffixed_name(desired.base_name, desired.identity))
        references += [each.id for each in self._shown(desired)]
        return list(dict.fromkeys(references))

    def _shown(self, desired: Desired) -> list[SandboxView]:
        view = self._fleet.view
        shown = view.by_uid.get(desired.identity.uid, ()) if view is not None else ()
        retired = desired.memory.unconfirmed
        return [each for each in shown if is_live(each) and each.id not in retired]

    def _fleet_is_clear(self, desired: Desired) -> bool:
        return self._fleet.view is not None and not self._shown(desired)

    def _create_age(self, sightings: _Sightings, desired: Desired) -> timedelta | None:
        # From the later of the create's own time and our first sight of it: clocks may jump.
        at = desired.last_create_at
        if at is None:
            return None
        now = self._clock.monotonic()
        if sightings.create_at != at:
            sightings.create_at, sightings.create_since = at, now
        seen_for = timedelta(seconds=now - sightings.create_since)
        return max(timedelta(0), min(seen_for, self._clock.now() - at))


class HolderUnknown(CallError):
    """Whether the resource still lives that a sandbox was made for, nobody can tell."""


def _unknown(error: CallError) -> Unknown:
    if isinstance(error, HolderUnknown):
        return Unknown("HolderUnknown", str(error))
    if isinstance(error, WrongOrganization):
        return Unknown("WrongOrganization", str(error))
    if isinstance(error, Denied):
        return Unknown("Unauthorized", with_next_step(error))
    if isinstance(error, Throttled):
        # One text, whether Daytona refused or we did not even ask: a status must not flap.
        return Unknown(THROTTLED, "Daytona's rate limit is used up; looking again when it opens.")
    return Unknown("DaytonaUnreachable", str(error))


def _is_ours(desired: Desired, sandbox: SandboxView) -> bool:
    return desired.owns(sandbox, desired.memory.sandbox_id, desired.name)
