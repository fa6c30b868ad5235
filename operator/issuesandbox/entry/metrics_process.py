"""The numbers of the process itself: its version, its settings, and whether its loop keeps up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from importlib.metadata import version

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from issuesandbox.engine.tuning import Tuning
from issuesandbox.entry.settings import Settings

_TICK = 0.5
# A scrape shows the worst of the last half minute: a short stall must not hide between two.
_KEPT = 60


class LoopLag:
    """How late the event loop is, by its own alarm clock."""

    def __init__(self) -> None:
        self._late: deque[float] = deque([0.0], maxlen=_KEPT)

    @property
    def worst(self) -> float:
        """Return how late it was at worst in the last half minute."""
        return max(self._late)

    async def run(self) -> None:
        """Measure until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + _TICK
            await asyncio.sleep(_TICK)
            self._late.append(max(0.0, clock() - due))


class ProcessState(Collector):
    """Builds every number anew from what is in force right now."""

    def __init__(self, lag: LoopLag, tuning: Tuning[Settings]) -> None:
        self._lag = lag
        self._tuning = tuning
        self._version = version("issuesandbox")

    def collect(self) -> Iterable[Metric]:
        """Yield the current numbers."""
        build = GaugeMetricFamily(
            "issuesandbox_build_info", "Always 1; the version that runs.", labels=["version"]
        )
        build.add_metric([self._version], 1)
        yield build
        limits = GaugeMetricFamily(
            "issuesandbox_limit_seconds", "Limits in force, by their name.", labels=["limit"]
        )
        for limit, seconds in _limits(self._tuning.current).items():
            limits.add_metric([limit], seconds)
        yield limits
        frozen, valid = self._tuning.frozen is not None, self._tuning.problem is None
        for name, text, value in (
            ("frozen", "1 while `kubectl isb freeze` holds.", frozen),
            ("settings_valid", "0 while the stored settings are refused.", valid),
            (
                "loop_lag_seconds",
                "How late the event loop was, at worst, in 30 s.",
                self._lag.worst,
            ),
        ):
            yield GaugeMetricFamily(f"issuesandbox_{name}", text, float(value))


def _limits(settings: Settings) -> dict[str, float]:
    """Return the limits that the service levels name."""
    timings = settings.timings
    named = {
        "poll": timings.run_tick,
        "probe": timings.probe_timeout,
        "boot": timings.create_limit,
        "start": timings.start_limit,
        "sweep": timings.reap_tick,
        "idle": timings.idle_limit,
        "deletion": timings.deletion_limit,
        "retention": settings.cleanup_retention,
    }
    seconds = {name: each.total_seconds() for name, each in named.items()}
    seconds["inactivity"] = settings.agent_inactivity_ms / 1000
    seconds["agent"] = settings.agent_max_wait_ms / 1000
    return seconds
