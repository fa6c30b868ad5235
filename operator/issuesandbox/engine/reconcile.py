"""One pass over one resource: observe, decide, act, record.

Holds no state of its own that matters: a pass that is cut off anywhere is repeated from what
Kubernetes and Daytona say then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from issuesandbox.api.status import Status
from issuesandbox.clock import Clock
from issuesandbox.domain import numbers
from issuesandbox.domain.buckets import Priority
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.decide import decide
from issuesandbox.domain.model import ANNOUNCEMENTS, Action, ActionKind, Observed, Plan, Want
from issuesandbox.domain.sandbox import Absent, Present, SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.acting import Actor, Did, findings_of
from issuesandbox.engine.action_log import Deed, log_action
from issuesandbox.engine.announcing import Announcer
from issuesandbox.engine.books import Books
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.engine.cleaning import with_deletion_record
from issuesandbox.engine.findings import Findings
from issuesandbox.engine.newborns import Newborns
from issuesandbox.engine.notes import deleting_retired, notes
from issuesandbox.engine.observe import Observer
from issuesandbox.engine.pacing import seconds_to_the_next
from issuesandbox.engine.rates import on_behalf_of, while_allowed
from issuesandbox.engine.reading import Reader, Reading
from issuesandbox.engine.record import next_status
from issuesandbox.engine.retirement import Retirement
from issuesandbox.engine.run_side import RunSide
from issuesandbox.engine.runs.driver import RunDriver
from issuesandbox.engine.runs.mover import Progress
from issuesandbox.engine.setbacks import setback
from issuesandbox.engine.writing import Writer
from issuesandbox.ports.errors import CallError, Conflict, NotFound
from issuesandbox.ports.ledgers import Ledgers
from issuesandbox.ports.resources import ResourceKey, Resources
from issuesandbox.ports.sandboxes import Sandboxes

_BRINGING_UP = frozenset({ActionKind.CREATE, ActionKind.START, ActionKind.RECOVER})


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside, as a pass needs it, and the right to change it."""

    sandboxes: Sandboxes
    resources: Resources
    clock: Clock
    may_act_for: Callable[[str], bool] = lambda _: True
    """Asked, with the repository, right before every change: a lease can be lost at any time."""
    ledgers: Ledgers | None = None
    """Where Secrets are read that go into a sandbox."""
    runs: RunDriver | None = None
    """Who drives the runs; without one, resources have sandboxes only."""
    stand_back: Callable[[float], Awaitable[None]] | None = None
    """Lets the passes of others go first, for so many seconds at most."""
    later: Callable[[Callable[[], None]], None] = lambda do: do()
    """Does what must not hold up a call, while that is under way."""
    newborns: Newborns = field(default_factory=Newborns)
    books: Books = field(default_factory=lambda: Books(Timings()))


class NotInCharge(Exception):
    """Another replica acts for this resource now."""


class Reconciler:
    """Makes passes; one instance serves all resources."""

    def __init__(
        self,
        ports: Ports,
        cache: ResourceCache,
        observer: Observer,
        reader: Reader,
        timings: Timings,
    ) -> None:
        self._ports = ports
        self._cache = cache
        self._observer = observer
        self._reader = reader
        self._timings = timings
        self._writer = Writer(ports.resources, cache, ports.clock, ports.books, self._check_charge)
        self._announcer = Announcer(self._writer, ports.clock)
        self._actor = Actor(ports.sandboxes, ports.ledgers)
        self._retirement = Retirement(
            ports.sandboxes,
            observer.check_organization,
            self._check_charge,
            ports.clock,
            timings,
        )
        self._runs = RunSide(ports.runs, ports.books, ports.clock)
        self._books = ports.books
        self.actions: Counter[str] = Counter()

    async def reconcile(self, key: ResourceKey) -> float | None:
        """Make one pass; return the seconds to the next one, or None to wait for an event."""
        body = self._cache.get(key)
        if body is None:
            self._observer.forget(key)
            self._retirement.forget(key)
            self._runs.leave(key)
            return None
        if not self._ports.may_act_for(body["spec"]["issue"]["repository"]):
            # Not even read: that would take a place at this replica's desk.
            self._runs.leave(key)
            return None
        result, wait = "error", None
        try:
            wait = await self._pass(key, self._reader.read(body))
            result = "ok"
        except NotInCharge:
            self._runs.leave(key)
            result = "not_in_charge"
        except (Conflict, NotFound) as error:
            # Somebody wrote in between: this pass saw an old resource, so drop it.
            await self._writer.look_again(key)
            gone = isinstance(error, NotFound)
            result, wait = (
                "gone" if gone else "conflict",
                self._timings.settle_check.total_seconds(),
            )
        finally:
            self._books.tally.count(numbers.PASSES, result)
        return wait

    async def _pass(self, key: ResourceKey, reading: Reading) -> float | None:
        self._books.stops.look(key, reading.resource.status, self._ports.clock.now())
        held_back = reading.desired.held_back
        if held_back is not None and not held_back.settled:
            return (held_back.retry or self._timings.settle_check).total_seconds()
        if self._has_expired(key, reading):
            await self._expire(key, reading)
            return None
        with on_behalf_of(_urgency(reading)), while_allowed(partial(self._check_charge, reading)):
            self._runs.hurry(key, reading)
            observed, plan = await self._plan(key, reading)
            return await self._carry_out(key, reading, observed, plan)

    def _has_expired(self, key: ResourceKey, reading: Reading) -> bool:
        expires_at, now = reading.expires_at, self._ports.clock.now()
        if expires_at is None or expires_at > now:
            return False
        # The last word on the issue goes first, unless GitHub takes none.
        return now >= expires_at + self._timings.tell_limit or self._runs.has_told(key, reading)

    async def _expire(self, key: ResourceKey, reading: Reading) -> None:
        self._check_charge(reading)
        last_seen = reading.desired.memory.state or "absent"
        log_action(key, reading, Deed("delete the resource", last_seen, "Expired"))
        await self._ports.resources.delete(key, reading.version)

    def _check_charge(self, reading: Reading) -> None:
        if not self._ports.may_act_for(reading.resource.spec.issue.repository):
            raise NotInCharge

    async def _plan(self, key: ResourceKey, reading: Reading) -> tuple[Observed, Plan]:
        desired = reading.desired
        self._observer.settle(key, desired)
        if _is_pristine(reading):
            observed = Observed(Absent())
            plan = self._decide(reading, observed)
            # There is nothing to look for, but what is made must be where it is seen later.
            doubt = await self._observer.foresee(desired) if plan.change else None
            return (observed, plan) if doubt is None else (doubt, self._decide(reading, doubt))
        glimpse = self._observer.glance(key, desired)
        if glimpse is not None:
            plan = self._decide(reading, glimpse)
            steady = plan.next_check is None and not desired.memory.unconfirmed
            if steady and not plan.needs_evidence:
                return glimpse, plan
        observed = await self._observer.look(key, desired)
        return observed, self._decide(reading, observed)

    def _decide(self, reading: Reading, observed: Observed) -> Plan:
        return decide(reading.desired, observed, self._ports.clock.now(), self._timings)

    async def _carry_out(
        self, key: ResourceKey, reading: Reading, observed: Observed, plan: Plan
    ) -> float | None:
        # From here on it may have been asked for.
        self._ports.newborns.forget(key.uid)
        parted = await self._part(key, reading, plan)
        if parted is None:
            return self._timings.settle_check.total_seconds()
        reading = parted
        if ActionKind.RELEASE in (each.kind for each in plan.actions):
            closed = await self._close_run(key, reading, plan)
            await self._announcer.release(key, closed, observed, plan)
            return None
        before = reading.resource.status
        protected = await self._announcer.protect(key, reading, plan)
        reading = self._reread(protected) if protected is not None else reading
        reading, plan, did = await self._act(key, reading, observed, plan)
        if did.created is not None and self._ports.stand_back is not None:
            # The announcement is enough for whoever comes after us; others wait for a sandbox.
            await self._ports.stand_back(self._timings.record_patience.total_seconds())
        findings = findings_of(observed, plan, did)
        if reading.resource.status != before:
            findings = replace(findings, announced=plan.reason == CLEANUP)
        acted = plan
        if did.created is not None:
            observed, plan = self._after_create(reading, did.created, observed, plan)
        progress = self._runs.advance(key, reading, plan, did.created)
        if progress is not None and progress.doubt:
            self._observer.doubt(key)
        status, run_check = await self._record(key, reading, plan, findings, progress)
        if status != before:
            # A create may be answered by a sandbox that runs already.
            told = (acted,) if plan is acted else (acted, plan)
            news = progress.told if progress is not None else ()
            await self._writer.tell(key, *notes(before, status, *told), *news)
        if did.followed.asked is not None:
            await self._writer.tell(key, deleting_retired(did.followed.asked))
        self.actions.update(did.done)
        self._observer.expect(key, observed)
        now = self._ports.clock.now()
        delay = seconds_to_the_next(reading, plan, run_check, now, self._timings)
        gone = findings.gone or findings.retired_gone is not None
        if not (gone or _leaves_more(before, status, did)):
            return delay
        # What the issue is told of it, what becomes of a resource without sandboxes or what begins
        # in one that was found, the next pass sees; our own write wakes nobody.
        soon = self._timings.settle_check.total_seconds()
        return soon if delay is None else min(delay, soon)

    async def _part(self, key: ResourceKey, reading: Reading, plan: Plan) -> Reading | None:
        """Have the run part with a sandbox that is given up; None while that is under way.

        Where its work was saved is written down before the sandbox is given up.
        """
        if not self._runs.may_be_left(key, reading, plan):
            return None
        progress = self._runs.salvage(key, reading, plan)
        if progress is None:
            return reading
        if progress.next_check is not None:
            return None
        body = await self._writer.write_status(key, reading, progress.status)
        await self._writer.tell(key, *progress.told)
        return self._reread(body) if body is not None else reading

    async def _act(
        self, key: ResourceKey, reading: Reading, observed: Observed, plan: Plan
    ) -> tuple[Reading, Plan, Did]:
        """Do what the plan says; return the resource and the plan as they are after it."""
        done: list[ActionKind] = []
        created: SandboxView | None = None
        failure: CallError | None = None
        failed: ActionKind | None = None
        announced: Mapping[str, Any] | None = None
        try:
            ordered = await self._actor.order(reading, plan)
        except CallError as error:
            return reading, setback(plan, error, self._timings), Did((), None, error, None)
        for action in plan.actions:
            if action.kind in ANNOUNCEMENTS:
                announced = await self._announcer.announce(key, reading, action, observed, plan)
                continue
            if action.kind is ActionKind.CREATE and announced is None and action.intent is None:
                await self._writer.confirm(key, reading)
            self._check_charge(reading)
            self._note(key, reading, plan, action)
            self._ports.later(partial(self._actor.log, key, reading, observed, action, plan))
            try:
                created = await self._actor.send(action, ordered) or created
                done.append(action.kind)
            except CallError as error:
                failure, failed = error, action.kind
                plan = setback(plan, error, self._timings)
            if action.kind is ActionKind.CREATE:
                result = numbers.OK if failure is None else type(failure).__name__
                self._books.tally.count(numbers.CREATES, result)
            if failure is not None:
                break
        # Only now, so that the call did not wait for it.
        reading = self._reread(announced) if announced is not None else reading
        did = Did(tuple(done), created, failure, failed)
        if did.arrived:
            self._observer.pace(key, plan, observed)
        if not plan.actions or isinstance(failure, Conflict):
            # Who waits for a name may wait for a retired one.
            followed = await self._retirement.follow(key, reading, observed)
            did = replace(did, followed=followed)
        return reading, plan, did

    def _note(self, key: ResourceKey, reading: Reading, plan: Plan, action: Action) -> None:
        """Tell those whom it concerns what is about to be done."""
        if not plan.synced:
            self._observer.stops_unseen(key)
        if action.kind in _BRINGING_UP:
            self._runs.scout(key, reading)

    async def _close_run(self, key: ResourceKey, reading: Reading, plan: Plan) -> Reading:
        """Give the run of a resource that goes its last word."""
        closed = await self._runs.close(key, reading, plan)
        if closed is None:
            return reading
        body = await self._writer.write_status(key, reading, closed)
        return self._reread(body) if body is not None else reading

    def _after_create(
        self, reading: Reading, created: SandboxView, observed: Observed, plan: Plan
    ) -> tuple[Observed, Plan]:
        """Take the answer to a create as the look that it is; what must follow, a pass does."""
        seen = Observed(Present(created), evidence=True)
        following = self._decide(reading, seen)
        return (observed, plan) if following.actions else (seen, following)

    async def _record(
        self,
        key: ResourceKey,
        reading: Reading,
        plan: Plan,
        findings: Findings,
        progress: Progress | None,
    ) -> tuple[Status, timedelta | None]:
        """Write down what the pass came to.

        Return the status, as it was if that is no news, and when the run needs the next pass.
        """
        now = self._ports.clock.now()
        base = progress.status if progress is not None else reading.resource.status
        run_check = progress.next_check if progress is not None else None
        status = next_status(reading, plan, findings, now, base)
        status = with_deletion_record(status, reading, findings, now, self._timings)
        written = await self._writer.write_status(key, reading, status)
        if written is None:
            return reading.resource.status, run_check
        # Before anybody is told: the run does not wait for that.
        if run_check == timedelta(0) and self._runs.look_ahead(key, reading, status, plan):
            # Who is on the way wakes us; a pass right now would only hold them up.
            run_check = self._timings.settle_check
        return status, run_check

    def _reread(self, body: Mapping[str, Any]) -> Reading:
        self._cache.put(body, own=True)
        return self._reader.read(body)


def _urgency(reading: Reading) -> Priority:
    """Return how urgent the calls of a pass are: what is to end goes before all else."""
    return {Want.GONE: Priority.KILL, Want.STOPPED: Priority.STOP}.get(
        reading.desired.want, Priority.CREATE
    )


def _leaves_more(before: Status, after: Status, did: Did) -> bool:
    """Tell whether what a pass wrote down brings up something that it has not done itself."""
    if after.sandbox_deletion != before.sandbox_deletion:
        return True
    known, found = (each.sandbox and each.sandbox.id for each in (before, after))
    # With one that it created, it has gone on already.
    return found not in (None, known) and did.created is None


def _is_pristine(reading: Reading) -> bool:
    """Tell whether nothing was ever done for the resource, so that there is nothing to look for."""
    status, desired = reading.resource.status, reading.desired
    untouched = status.sandbox is None and status.intent is None
    untouched = untouched and desired.memory.first_create is None
    return untouched and (desired.announced or not desired.has_finalizer)
