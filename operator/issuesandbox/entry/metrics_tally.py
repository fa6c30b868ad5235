"""What was counted, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from issuesandbox.domain.numbers import FAMILIES, Family
from issuesandbox.engine.tally import Spread, Tally


class TallyCollector(Collector):
    """Shows every family, also those of which nothing was counted yet."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def collect(self) -> Iterable[Metric]:
        """Yield the current numbers."""
        for family in FAMILIES:
            yield self._histogram(family) if family.bounds else self._counter(family)

    def _counter(self, family: Family) -> Metric:
        metric = CounterMetricFamily(
            f"issuesandbox_{family.name}", family.text, labels=family.labels
        )
        for values, count in self._tally.counts(family):
            metric.add_metric(values, count)
        return metric

    def _histogram(self, family: Family) -> Metric:
        metric = HistogramMetricFamily(
            f"issuesandbox_{family.name}", family.text, labels=family.labels
        )
        for values, spread in self._tally.spreads(family):
            metric.add_metric(values, list(_buckets(spread)), spread.total)
        return metric


def _buckets(spread: Spread) -> Iterator[tuple[str, float]]:
    bounds = [*map(str, spread.bounds), "+Inf"]
    yield from zip(bounds, map(float, accumulate(spread.counts)), strict=True)
