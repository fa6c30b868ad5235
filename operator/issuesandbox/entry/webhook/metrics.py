"""The numbers that the webhook adapter shows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from issuesandbox.engine.inbox.catch_up import CatchUp
from issuesandbox.engine.inbox.courtesy import Courtesy
from issuesandbox.engine.inbox.index import IssueIndex
from issuesandbox.engine.inbox.policies import PolicyKeeper

_EVENTS = frozenset(
    {"issues", "issue_comment", "pull_request", "push", "ping", "installation"}
    | {"installation_repositories"}
)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class DeliveryNumbers:
    """How many deliveries came, how they were answered and how long that took.

    Plain numbers, since all of them come from one thread: locks would cost more than counting.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._answers: dict[tuple[str, int, str], int] = {}
        self._within = [0] * (len(_SECONDS) + 1)
        self._seconds = 0.0
        registry.register(self)

    def count(self, event: str, status: int, result: str, seconds: float) -> None:
        """Count one answer; what strangers make up must not become a label."""
        key = (event if event in _EVENTS else "other", status, result)
        self._answers[key] = self._answers.get(key, 0) + 1
        self._within[bisect_left(_SECONDS, seconds)] += 1
        self._seconds += seconds

    def collect(self) -> Iterable[Metric]:
        """Yield the current numbers."""
        answers = CounterMetricFamily(
            "issuesandbox_webhook_deliveries",
            "Deliveries, by event, status of the answer and what became of them.",
            labels=("event", "status", "result"),
        )
        for (event, status, result), count in self._answers.items():
            answers.add_metric((event, str(status), result), count)
        yield answers
        bounds = (*map(floatToGoString, _SECONDS), "+Inf")
        yield HistogramMetricFamily(
            "issuesandbox_webhook_answer_seconds",
            "Time until a delivery was answered.",
            buckets=list(zip(bounds, accumulate(self._within), strict=True)),
            sum_value=self._seconds,
        )


class InboxCollector:
    """Builds the other numbers anew from what the inbox holds right now."""

    def __init__(
        self, index: IssueIndex, policies: PolicyKeeper, catch_up: CatchUp, courtesy: Courtesy
    ) -> None:
        self._index = index
        self._policies = policies
        self._catch_up = catch_up
        self._courtesy = courtesy

    def collect(self) -> Iterable[Metric]:
        """Yield the current numbers."""
        yield GaugeMetricFamily(
            "issuesandbox_webhook_resources", "Resources in the index.", len(self._index)
        )
        yield GaugeMetricFamily(
            "issuesandbox_webhook_policy_valid",
            "1 if the stored policy is the one in force.",
            0 if self._policies.problem else 1,
        )
        yield GaugeMetricFamily(
            "issuesandbox_webhook_catch_up_timestamp_seconds",
            "When a catch-up of this replica last went through.",
            self._catch_up.last_success,
        )
        for name, text, value in (
            ("catch_up_found", "Missed events that changed something.", self._catch_up.found),
            ("catch_up_failures", "Parts of a catch-up that failed.", self._catch_up.failures),
            ("catch_up_refused", "Finds that nobody will ever take.", self._catch_up.refused),
            ("courtesy_failures", "Reactions and answers that failed.", self._courtesy.failures),
        ):
            yield CounterMetricFamily(f"issuesandbox_webhook_{name}", text, value)


def process_registry() -> CollectorRegistry:
    """Return a registry with the numbers of the process itself."""
    registry = CollectorRegistry()
    for build in (ProcessCollector, PlatformCollector, GCCollector):
        build(registry=registry)
    return registry
