"""The numbers of what keeps the operator from doing harm: leases, limits, breakers, the reaper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from issuesandbox.adapters.daytona.events import DaytonaEvents
from issuesandbox.domain.buckets import Bucket
from issuesandbox.domain.orphans import Doubt
from issuesandbox.engine.breaker import Breaker
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.rates import RateGate
from issuesandbox.engine.reaper import Fate, Reaper
from issuesandbox.engine.roles import Role

Key = TypeVar("Key", bound=str)


@dataclass(frozen=True, slots=True)
class GuardCollector(Collector):
    """Builds every number anew from what the guards hold right now."""

    role: Role
    fleet: Fleet
    breaker: Breaker
    gate: RateGate
    reaper: Reaper
    events: DaytonaEvents | None

    def collect(self) -> Iterable[Metric]:
        """Yield the current numbers; what only the holder of a role knows is 0 without it."""
        tidies, acts = self.role.singleton.holds(), self.role.acts()
        yield _gauges(
            "lease_held", "1 for each lease this replica holds.", "lease", self.role.held()
        )
        yield GaugeMetricFamily(
            "issuesandbox_fleet_age_seconds",
            "Age of the last complete list of own sandboxes.",
            self.fleet.age,
        )
        yield GaugeMetricFamily(
            "issuesandbox_orphans",
            "Sandboxes with our labels and without a resource.",
            self.reaper.orphans if tidies else 0,
        )
        text = "Of them those that the reaper keeps for now, by what keeps them."
        kept = {each.value: self.reaper.kept[each] if tidies else 0 for each in Doubt}
        yield _gauges("orphans_kept", text, "reason", kept)
        # Not just `orphans`: a gauge and a counter of one name are one family to some scrapers.
        yield _counters("orphans_treated", "Orphans by fate.", "fate", self.reaper.fates, Fate)
        breakers = {
            "broken": acts and self.breaker.is_open,
            "orphans": tidies and self.reaper.breaker is not None,
        }
        text = "1 while too much is broken at once to believe it."
        yield _gauges("breaker_open", text, "breaker", breakers)
        text = "Calls refused for lack of room."
        yield _counters("daytona_throttled", text, "bucket", self.gate.refused, Bucket)
        text = "Calls that Daytona's rate limit still allows."
        yield _gauges("daytona_tokens", text, "bucket", self.gate.left())
        yield CounterMetricFamily(
            "issuesandbox_state_events",
            "States of sandboxes that Daytona told by itself.",
            self.events.heard if self.events is not None else 0,
        )


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"issuesandbox_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family


def _counters(
    name: str, text: str, label: str, values: Counter[Key], known: Iterable[Key]
) -> Metric:
    family = CounterMetricFamily(f"issuesandbox_{name}", text, labels=[label])
    for key in known:
        family.add_metric([key], values[key])
    return family
