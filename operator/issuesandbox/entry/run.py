"""`issuesandbox run`: the composition root. The only place that wires adapters to the engine."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any

import click
from prometheus_client import CollectorRegistry

from issuesandbox.adapters.kube.backlog import Backlog
from issuesandbox.adapters.kube.connection import Connection, load_connection
from issuesandbox.adapters.kube.ledgers import KubeLedgers
from issuesandbox.adapters.kube.resources import KubeResources
from issuesandbox.domain import numbers
from issuesandbox.domain.admission import Limits
from issuesandbox.domain.orphans import OrphanRules, Scope
from issuesandbox.engine.admission import AdmissionDesk
from issuesandbox.engine.breaker import Breaker
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.engine.candidates import admission, register
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.hearsay import Hearsay
from issuesandbox.engine.intake import Intake
from issuesandbox.engine.newborns import Newborns
from issuesandbox.engine.observe import Guards, Observer
from issuesandbox.engine.organization import Homes
from issuesandbox.engine.reading import Reader, Views
from issuesandbox.engine.reaper import Outside, Reaper, suspicion
from issuesandbox.engine.reconcile import Ports, Reconciler
from issuesandbox.engine.roll import Roll
from issuesandbox.engine.switches import Switches
from issuesandbox.engine.tuning import Listeners, Tuning
from issuesandbox.engine.workqueue import WorkQueue
from issuesandbox.entry.connecting import World, connect, open_home
from issuesandbox.entry.debug_state import debug_state
from issuesandbox.entry.informer import run_informer
from issuesandbox.entry.metrics import ViewCollector, build_registry
from issuesandbox.entry.metrics_guards import GuardCollector
from issuesandbox.entry.metrics_process import LoopLag, ProcessState
from issuesandbox.entry.metrics_tally import TallyCollector
from issuesandbox.entry.probes import serve_probes
from issuesandbox.entry.runs import Engine, build_auditor, build_driver, default_limits, defaults
from issuesandbox.entry.settings import Settings
from issuesandbox.entry.tuned import attach, begin, build_tuning
from issuesandbox.ports.resources import ResourceKey

logger = logging.getLogger(__name__)


@click.command()
def run() -> None:
    """Run the operator until it is told to stop.

    Its settings come from the environment and from the ConfigMap issuesandbox beside it.
    """
    import uvloop

    # What is loaded by now stays: the collector need not walk it again and again. Most of what
    # comes is gone soon without its help, so it need not look as often as it would.
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    # kopf has a thread of its own: an event on its way must not wait 5 ms for each turn of it.
    sys.setswitchinterval(0.0005)
    uvloop.run(_run(load_connection()))


async def _run(connection: Connection) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    async with AsyncExitStack() as stack:
        home = open_home(connection, stack)
        tuning = build_tuning(home.configuration, home.clock, os.environ)
        settings = await begin(tuning)
        world = await connect(settings, connection, home, stack)
        operator = Operator(settings, world, tuning)
        await stack.enter_async_context(
            serve_probes(
                settings.http_host,
                settings.http_port,
                operator.registry,
                operator.missing,
                operator.state,
            )
        )
        await _until_first_ends(
            stop.wait(),
            *operator.works(),
            run_informer(connection, settings.watch_namespaces, operator.intake.receive),
        )


class Operator:
    """One replica's engine, wired and ready to run."""

    def __init__(self, settings: Settings, world: World, tuning: Tuning[Settings]) -> None:
        timings, clock = settings.timings, world.clock
        self._settings_tick = timings.settings_tick
        self._role, identity, self._tuning = world.role, world.identity, tuning
        self._desk = AdmissionDesk(_limits(settings), timings, clock)
        self._world, books = world, world.books
        self._identity = settings.identity()
        self._roll, self._lag = Roll(clock), LoopLag()
        self._switches = Switches(settings.flags, self._is_frozen)
        self._auditor = build_auditor(world.runs, books.tally, clock, timings)
        self._cache = ResourceCache(self._hear, self._miss)

        def meter(waited: float, took: float) -> None:
            books.tally.time(numbers.QUEUE_WAIT, waited)
            books.tally.time(numbers.PASS_TIME, took)

        self._queue: WorkQueue[ResourceKey] = WorkQueue(meter=meter, is_urgent=self._cache.urgent)
        self._backlog = Backlog()
        resources = KubeResources(world.requests, clock, identity, self._backlog)
        namespaces = settings.watch_namespaces
        newborns = self._newborns = Newborns(self._role.in_charge_since, timings.newborn_margin)
        self.intake = Intake(
            self._cache, self._queue, resources, timings, namespaces, newborns.hear
        )
        self._fleet = Fleet(
            world.sandboxes, world.installation, timings, clock, self._role.acts, world.home
        )
        self._breaker, self._homes = Breaker(self._fleet, clock, timings), Homes()
        guards = Guards(self._homes, lambda: self._breaker.why)
        self._observer = Observer(world.sandboxes, resources, self._fleet, clock, timings, guards)
        self._hearsay = Hearsay(
            world.installation, timings, self._cache, self.intake.find, self._doubt
        )
        self._events = world.events
        may_start = admission(self._desk, self.intake.is_complete)
        engine = Engine(
            resources=resources,
            ledgers=KubeLedgers(world.requests),
            clock=clock,
            namespace=world.namespace,
            may_act_for=self._role.may_act_for,
            wake=self._queue.add,
            books=books,
            switches=self._switches,
            on_fresh=self.intake.refresh,
        )
        driver = self._driver = build_driver(settings, world.runs, engine)
        views = Views(self._fleet, may_start, self._switches, newborns)
        self._reader = Reader(world.installation, timings, clock, views)
        self._reconciler = Reconciler(
            Ports(
                sandboxes=world.sandboxes,
                resources=resources,
                clock=clock,
                may_act_for=self._role.may_act_for,
                ledgers=engine.ledgers,
                runs=driver,
                stand_back=self._queue.stand_back,
                later=_later,
                newborns=newborns,
                books=books,
            ),
            self._cache,
            self._observer,
            self._reader,
            timings,
        )
        self._scope = Scope(world.installation, namespaces, world.home)
        self._reaper = Reaper(
            Outside(world.sandboxes, resources, clock),
            OrphanRules(self._scope, timings),
            may_sweep=self._may_sweep,
        )
        self.registry: CollectorRegistry = build_registry(
            ViewCollector(self._cache, self._fleet, self._queue, self._reconciler, self._roll),
            GuardCollector(
                self._role, self._fleet, self._breaker, world.gate, self._reaper, world.events
            ),
            TallyCollector(books.tally),
            ProcessState(self._lag, self._tuning),
        )
        self._reader.adopt(defaults(settings))
        listeners: Listeners[Settings] = Listeners(
            self._adopt, self._freeze_changed, self._role.singleton.holds, self._advice
        )
        attach(tuning, settings, listeners)

    def works(self) -> tuple[Coroutine[Any, Any, object], ...]:
        """Return everything that runs side by side."""
        suspects = suspicion(self._fleet, self._cache, self._scope)
        singleton = self._role.singleton
        feed = (self._events.run(self._hearsay.hear), self._hearsay.run()) if self._events else ()
        audit = (self._auditor.run(singleton.holds),) if self._auditor is not None else ()
        return (
            *feed,
            *audit,
            self._role.run(self._charge_changed),
            self._make_passes(),
            self._fleet.run(self.intake.wake, self.intake.compare),
            self._desk.run(self.intake.wake),
            self._reaper.run(suspects),
            self._tuning.run(self._settings_tick),
            self._lag.run(),
            self._backlog.run(),
            self.intake.run_resync(),
        )

    def missing(self) -> str | None:
        """Return what this replica lacks to do its work, or None if it is ready."""
        if not self.intake.is_complete():
            return "the resources of the cluster are still being read"
        if self._role.acts() and self._fleet.view is None:
            return "there is no fresh list of Daytona's sandboxes"
        return None

    def state(self) -> Mapping[str, Any]:
        """Return what somebody on the machine may look at; no secret and no issue's text."""
        breaker = self._breaker
        return debug_state(self._role, self._fleet, breaker, self._queue, self._roll, self._tuning)

    def _hear(self, key: ResourceKey, body: Mapping[str, Any]) -> None:
        register(self._desk)(key, body)
        try:
            self._roll.put(key, body)
            self._breaker.put(key, body)
            self._homes.put(key, body)
            if self._auditor is not None:
                self._auditor.hear(key, body)
        except Exception:
            # What is only counted must not keep a resource from being looked after.
            logger.exception("not counted", extra={"resource": str(key)})

    def _miss(self, key: ResourceKey) -> None:
        self._desk.drop(key.uid)
        self._newborns.forget(key.uid)
        self._switches.forget(key.uid)
        self._roll.drop(key)
        self._breaker.drop(key)
        self._homes.drop(key)
        if self._auditor is not None:
            self._auditor.miss(key)

    def _adopt(self, settings: Settings) -> None:
        if settings.identity() != self._identity:
            self._identity = settings.identity()
            self._world.use_keys(settings)
            self._observer.keys_changed()
        self._desk.adopt(_limits(settings))
        self._driver.adopt(default_limits(settings))
        ruled_anew = self._reader.adopt(defaults(settings))
        if self._switches.adopt(settings.flags) or ruled_anew:
            # A run may hear now what it did not, or what is kept may be due.
            self.intake.wake_all()

    def _advice(self, settings: Settings) -> tuple[str, ...]:
        """Tell what is allowed but unwise, as far as only a running operator can know."""
        lines = []
        if self._fleet.elsewhere:
            text = "sandboxes with this ISSUESANDBOX_INSTALLATION were made by another operator"
            lines.append(f"{text}, and are left alone; give each operator an id of its own")
        if self._world.runs.lacks_github(settings):
            lines.append("credentials for GitHub take effect at the next start of the operator")
        return tuple(lines)

    def _may_sweep(self) -> bool:
        # Whoever is not listed yet would look like an orphan's missing owner.
        in_charge = self.intake.is_complete() and self._role.singleton.holds()
        return in_charge and not self._is_frozen()

    def _is_frozen(self) -> bool:
        return self._tuning.frozen is not None

    def _freeze_changed(self, _: bool) -> None:
        self.intake.wake_all()

    async def _make_passes(self) -> None:
        # Until all are known nobody can be admitted, so a pass would only be in the way.
        await self.intake.complete()
        await self._queue.run(self._reconciler.reconcile)

    def _doubt(self, key: ResourceKey) -> None:
        # A replica that may not act would gather doubts it never clears.
        if self._role.acts():
            self._observer.doubt(key)
            self._queue.add(key)

    def _charge_changed(self, in_charge: bool) -> None:
        if in_charge:
            self._fleet.hurry()
            self.intake.wake_all()


def _limits(settings: Settings) -> Limits:
    return Limits(
        installation=settings.max_sandboxes,
        repository=settings.max_per_repository,
        new_runs=settings.max_new_runs,
        allowed=settings.allowed_repositories,
    )


def _later(do: Callable[[], None]) -> None:
    """Do it when the call that is about to be made is on its way."""
    loop = asyncio.get_running_loop()
    # aiohttp writes what a request carries one round of the loop after the request was made.
    loop.call_soon(loop.call_soon, do)


async def _until_first_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Run all until one ends, then end the others; what one raised is raised here."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
