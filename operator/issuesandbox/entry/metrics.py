"""The numbers the operator shows: gauges read from the views at scrape time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from issuesandbox.api.status import Phase
from issuesandbox.domain.model import ActionKind
from issuesandbox.domain.states import SIGHTS
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.reconcile import Reconciler
from issuesandbox.engine.roll import Roll
from issuesandbox.engine.workqueue import WorkQueue
from issuesandbox.ports.resources import ResourceKey

_SHOWN = frozenset(ActionKind) - {
    ActionKind.ANNOUNCE_FIRST_CREATE,
    ActionKind.WRITE_INTENT,
    ActionKind.RELEASE,
}


class ViewCollector(Collector):
    """Builds every number anew from what the engine holds right now."""

    def __init__(
        self,
        cache: ResourceCache,
        fleet: Fleet,
        queue: WorkQueue[ResourceKey],
        reconciler: Reconciler,
        roll: Roll,
    ) -> None:
        self._cache = cache
        self._fleet = fleet
        self._queue = queue
        self._reconciler = reconciler
        self._roll = roll

    def collect(self) -> Iterable[Metric]:
        """Yield the current numbers."""
        yield GaugeMetricFamily(
            "issuesandbox_resources", "Resources in the cache.", len(self._cache)
        )
        yield GaugeMetricFamily(
            "issuesandbox_queue_depth", "Resources that wait for a pass.", self._queue.depth
        )
        yield GaugeMetricFamily(
            "issuesandbox_queue_overdue_seconds",
            "Longest wait of a due pass.",
            self._queue.overdue(),
        )
        yield from self._sandboxes()
        yield from self._resources()
        actions = CounterMetricFamily(
            "issuesandbox_actions", "Actions taken, by kind.", labels=["action"]
        )
        for kind in _SHOWN:
            actions.add_metric([kind.value], self._reconciler.actions[kind])
        yield actions

    def _resources(self) -> Iterable[Metric]:
        phases = GaugeMetricFamily(
            "issuesandbox_phase_resources", "Resources in each phase.", labels=["phase"]
        )
        for phase in Phase:
            phases.add_metric([phase.value], self._roll.phases[phase.value])
        yield phases
        oldest = GaugeMetricFamily(
            "issuesandbox_phase_oldest_seconds",
            "For how long nothing has moved for the slowest resource of each passing phase.",
            labels=["phase"],
        )
        for name, seconds in sorted(self._roll.oldest().items()):
            oldest.add_metric([name], seconds)
        yield oldest
        conditions = GaugeMetricFamily(
            "issuesandbox_condition_resources",
            "Resources with each condition.",
            labels=["condition", "status", "reason"],
        )
        for (kind, status, reason), count in self._roll.conditions.items():
            conditions.add_metric([kind, status, reason], count)
        yield conditions

    def _sandboxes(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            "issuesandbox_sandboxes", "Own sandboxes in the fleet view.", labels=["state"]
        )
        view = self._fleet.view
        states = Counter(
            sandbox.state or "none"
            for group in (view.by_uid.values() if view else ())
            for sandbox in group
        )
        for state, count in states.items():
            family.add_metric([state], count)
        yield family
        yield GaugeMetricFamily(
            "issuesandbox_strange_sandboxes",
            "Of them those that show no state, or one that this version does not know.",
            sum(count for state, count in states.items() if state not in SIGHTS),
        )


def build_registry(*collectors: Collector) -> CollectorRegistry:
    """Return a registry with our own numbers and those of the process."""
    from prometheus_client import GCCollector, PlatformCollector, ProcessCollector

    registry = CollectorRegistry()
    for build in (ProcessCollector, PlatformCollector, GCCollector):
        build(registry=registry)
    for collector in collectors:
        registry.register(collector)
    return registry
