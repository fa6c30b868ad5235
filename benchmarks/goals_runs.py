"""What the figures of runs and of the webhook adapter must be. Pure, as `goals.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from meters import Spread, percentile
from rows import Measured, Row, at_least, limited, timed


def to_pull_request(measured: Measured) -> list[Row]:
    """Return what a run costs beside a script that does the same."""
    figures = measured["to_pull_request"]
    ours, base = figures["operator"], figures["script"]
    scenario = "trigger to pull request, without the agent"
    return [
        timed(scenario, "time", "s", (ours, base, "own_s"), (math.inf, 1.2)),
        timed(scenario, "of it before the agent", "s", (ours, base, "to_agent_s"), None),
        timed(scenario, "of it after the agent", "s", (ours, base, "from_agent_s"), None),
        limited("one run", "writes to the API server", "", [figures["writes"]], 12),
    ]


def live_runs(measured: Measured) -> list[Row]:
    """Return what following many agents costs."""
    figures = measured["live_runs"]
    scenario = f"{figures['runs']} live runs"
    calls = round(figures["calls_per_run_and_tick"], 2)
    return [
        limited(scenario, "share of a core", "%", [figures["cpu_share"] * 100], 25),
        limited(scenario, "toolbox calls per run and tick", "", [calls], 1),
        limited(scenario, "output lag p50", "ms", [figures["lag_p50_ms"]], None),
        limited(scenario, "output lag p99", "ms", [figures["lag_p99_ms"]], 2500),
    ]


def limits(measured: Measured) -> list[Row]:
    """Return how much longer than their limits agents live."""
    figures = measured["limits"]
    return [
        *_spread("agent over its limit", "dead", figures["polite"], 3),
        *_spread("the same, SIGTERM ignored", "dead", figures["deaf"], None),
    ]


def stops(measured: Measured) -> list[Row]:
    """Return how fast a stop is."""
    figures = measured["stops"]
    scenario = f"agent stopped, {len(figures['dead_s'])} times"
    return [
        *_spread(scenario, "dead", figures["dead_s"], 5),
        *_spread(scenario, "sandbox not running", figures["still_s"], 30),
    ]


def webhook(measured: Measured) -> list[Row]:
    """Return how many deliveries the webhook adapter takes."""
    figures = measured["webhook"]
    scenario = "signed webhook deliveries"
    rate = figures["deliveries_per_core_second"]
    return [
        at_least(scenario, "per second of one core", "/s", rate, 500),
        at_least(scenario, "of a bare handler's rate", "x", figures["ratio"], 0.5),
        limited(scenario, "answered within, p99", "ms", [figures["answer_p99_ms"]], 100),
        limited(scenario, "growth of memory", "MiB", [figures["rss_growth_mib"]], 8),
    ]


def _spread(scenario: str, figure: str, seconds: Sequence[float], limit: float | None) -> list[Row]:
    """Return median, 95th percentile and maximum; the last one has the goal."""
    return [
        limited(scenario, f"{figure}, p50", "s", [Spread.of(seconds).median], None),
        limited(scenario, f"{figure}, p95", "s", [percentile(seconds, 95)], None),
        limited(scenario, f"{figure}, max", "s", [max(seconds)], limit),
    ]
