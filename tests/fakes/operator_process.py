"""One operator process: the real engine, wired as the composition root does, over fake ports.

Its memory (cache, fleet view, sightings, agenda) dies with it. It does nothing by itself: the
test says when an event arrives, when a pass runs and what becomes of its calls.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, cast

from tests.fakes.clock import FakeClock
from tests.fakes.daytona import FakeDaytona
from tests.fakes.kube import FakeKube
from tests.fakes.ports import FakeResources, FakeSandboxes
from tests.fakes.wire import Drive, Killed, Line, Network

from issuesandbox.adapters.kube.server_clock import ServerClock
from issuesandbox.api.names import FINALIZER
from issuesandbox.domain.admission import Limits
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.admission import AdmissionDesk
from issuesandbox.engine.breaker import Breaker
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.engine.candidates import admission, register
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.intake import Census, Intake
from issuesandbox.engine.newborns import Newborns
from issuesandbox.engine.observe import Guards, Observer
from issuesandbox.engine.organization import Homes
from issuesandbox.engine.reading import Reader, Views
from issuesandbox.engine.reconcile import Ports, Reconciler
from issuesandbox.engine.runs.driver import RunDriver
from issuesandbox.engine.runs.steps import Steps
from issuesandbox.engine.workqueue import WorkQueue
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.resources import ResourceKey

INSTALLATION = "ours"
_BACK_OFF = 2.0


class Agenda:
    """The work queue without a loop: when each key is due."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.deadlines: dict[ResourceKey, float] = {}

    def add(self, key: ResourceKey, delay: float = 0.0, unless: object = None) -> None:
        """Ask for a pass; a sooner one that is pending wins."""
        deadline = self._clock.monotonic() + max(0.0, delay)
        self.deadlines[key] = min(deadline, self.deadlines.get(key, deadline))


class OperatorProcess:
    """An operator from its start to its death."""

    def __init__(
        self,
        daytona: FakeDaytona,
        kube: FakeKube,
        network: Network,
        clock: FakeClock,
        timings: Timings,
        *,
        alone: bool = False,
        steps: Steps | None = None,
    ) -> None:
        self.machine_clock = clock
        self.clock = ServerClock(clock)
        self.clock.learn(kube.date())
        # Of several that act at once, none is in charge.
        in_charge_since = self.clock.now() if alone else None
        self.line = Line(network)
        self.agenda = Agenda(clock)
        self.acting_for: ResourceKey | None = None
        self.deaf = False
        """Whether its watch is dead, without anybody noticing."""
        self._daytona = daytona
        self._kube = kube
        self._timings = timings
        self._hanging: dict[ResourceKey, Drive] = {}
        self._blind: set[ResourceKey] = set()
        sandboxes = FakeSandboxes(daytona, self.line, timings)
        resources = FakeResources(kube, self.line, timings, self.clock.learn)
        desk = AdmissionDesk(Limits(100, 100, 1000), timings, self.clock)
        self._register = register(desk)
        self._desk = desk
        self._cache = ResourceCache(self._hear, self._miss)
        self._fleet = Fleet(sandboxes, INSTALLATION, timings, self.clock)
        self._breaker = Breaker(self._fleet, self.clock, timings)
        self.homes = Homes()
        guards = Guards(self.homes, lambda: self._breaker.why)
        self._observer = Observer(sandboxes, resources, self._fleet, self.clock, timings, guards)
        self._newborns = Newborns(lambda _: in_charge_since, timings.newborn_margin)
        views = Views(self._fleet, admission(desk, lambda: True), newborns=self._newborns)
        # What runs do goes on beside the passes, so the test must have a loop then.
        runs = RunDriver(steps, self.agenda.add, timings, RunLimits()) if steps else None
        self._reconciler = Reconciler(
            Ports(sandboxes, resources, self.clock, runs=runs, newborns=self._newborns),
            self._cache,
            self._observer,
            Reader(INSTALLATION, timings, self.clock, views),
            timings,
        )
        queue = cast("WorkQueue[ResourceKey]", self.agenda)
        census = cast("Census", resources)
        self._intake = Intake(self._cache, queue, census, timings, (), self._newborns.hear)
        self._next_event = 0
        self.fleet_due = clock.monotonic()
        self.relist()

    def receive_events(self, count: int | None = None) -> None:
        """Take the next events of the watch, all of them unless told."""
        for kind, body in self._take_events(count):
            self._intake.receive(kind, body)

    def lose_events(self, count: int) -> None:
        """Let the next events of the watch go unseen."""
        self._take_events(count)

    def relist(self) -> None:
        """Compare with a full list, as the rare resync and a new watch do."""
        self.clock.learn(self._kube.date())
        self.deaf = False
        bodies = self._kube.bodies()
        listed = {each["metadata"]["uid"] for each in bodies}
        for key in (each for each in self.known() if each.uid not in listed):
            body = {"metadata": key._asdict()}
            self._intake.receive("DELETED", body)
        for body in bodies:
            self._intake.receive(None, body)
        self._intake.wake_all()
        self._next_event = len(self._kube.log)

    def _hear(self, key: ResourceKey, body: Mapping[str, Any]) -> None:
        self._register(key, body)
        self._breaker.put(key, body)
        self.homes.put(key, body)

    def _miss(self, key: ResourceKey) -> None:
        self._newborns.forget(key.uid)
        self._desk.drop(key.uid)
        self._breaker.drop(key)
        self.homes.drop(key)

    def hear_of(self, key: ResourceKey) -> None:
        """Hear that something became of a resource's sandbox, as Daytona's push feed tells."""
        self._observer.doubt(key)
        self.agenda.add(key)

    def change_key(self) -> None:
        """Take note that every further call is made with another key."""
        self._observer.keys_changed()

    def known(self) -> list[ResourceKey]:
        """Return the keys of all resources this operator has heard of."""
        return list(self._cache.keys())

    def due(self) -> list[ResourceKey]:
        """Return the keys whose pass can run now."""
        now = self.clock.monotonic()
        ready = [key for key, deadline in self.agenda.deadlines.items() if deadline <= now]
        return sorted(key for key in ready if key not in self._hanging)

    def next_due(self) -> float:
        """Return in how many seconds there is something to do."""
        passes = [
            deadline for key, deadline in self.agenda.deadlines.items() if key not in self._hanging
        ]
        return max(0.0, min([*passes, self.fleet_due]) - self.clock.monotonic())

    def work(self) -> None:
        """Do all that is due now, to its end."""
        if not self.deaf:
            self.receive_events()
        for key in self.hanging():
            self.make_pass(key)
        if self.fleet_due <= self.clock.monotonic():
            self.refresh_fleet()
        for key in self.due():
            self.make_pass(key)

    def hanging(self) -> list[ResourceKey]:
        """Return the keys whose pass hangs in a call."""
        return sorted(self._hanging)

    def make_pass(self, key: ResourceKey) -> None:
        """Make a pass, or go on with the one that hangs; raises Killed if the process dies."""
        drive = self._hanging.pop(key, None)
        if drive is None:
            self.agenda.deadlines.pop(key, None)
            self._note_blindness(key)
            drive = Drive(self._reconciler.reconcile(key))
        self.acting_for = key
        try:
            ended = self._drive(drive)
        except CallError:
            self.agenda.add(key, _BACK_OFF)
            return
        finally:
            self.acting_for = None
        if not ended:
            self._hanging[key] = drive
        elif drive.result is not None:
            self.agenda.add(key, drive.result)

    def is_blind(self) -> bool:
        """Tell whether the pass that acts now can have no evidence for anything it does."""
        return self._daytona.outage.blinds and self.acting_for in self._blind

    def _note_blindness(self, key: ResourceKey) -> None:
        # The very first create goes out without a look: the unique name is its lock.
        body = self._cache.get(key)
        begun = body is not None and FINALIZER in body["metadata"].get("finalizers", ())
        begun = begun and not self._newborns.knows(key.uid, "", self.clock.now())
        if begun and self._daytona.outage.blinds:
            self._blind.add(key)
        else:
            self._blind.discard(key)

    def refresh_fleet(self) -> None:
        """Read the fleet view."""
        self.fleet_due = self.clock.monotonic() + self._timings.fleet_tick.total_seconds()
        refresh = cast(
            "Coroutine[Any, Any, None]",
            self._fleet.refresh(self._intake.wake, self._intake.compare),
        )
        drive = Drive(refresh)
        while not self._drive(drive):
            continue

    def die(self) -> None:
        """End at once, wherever every pass is."""
        self.line.cut = True
        for drive in self._hanging.values():
            try:
                drive.abandon()
            except Killed:
                continue
        self._hanging.clear()

    def _drive(self, drive: Drive) -> bool:
        try:
            return drive.go_on()
        except Killed:
            self.die()
            raise

    def _take_events(self, count: int | None) -> list[tuple[str, dict[str, Any]]]:
        end = len(self._kube.log) if count is None else self._next_event + count
        events = self._kube.log[self._next_event : end]
        self._next_event += len(events)
        return events
