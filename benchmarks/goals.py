"""What the figures must be, and whether they are. Pure: from measurements to rows of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import goals_runs
from issuesandbox.domain.timings import Timings
from meters import Spread
from rows import Measured, Row, each_of, limited, timed

_TICK = Timings().fleet_tick.total_seconds()
# Ticks are spread by a tenth, so that replicas do not list in step.
_JITTER = 1.1
_BLOCKED = "longest time a loop was blocked"


def rows(measured: Measured) -> list[Row]:
    """Return the whole table; what was not measured is left out."""
    makers: Sequence[tuple[str, Callable[[Measured], list[Row]]]] = (
        ("sizes", _steady),
        ("burst", _burst),
        ("sizes", _idle),
        ("sizes", _start),
        ("sizes", _tick),
        ("sizes", _growth),
        ("happy_life", _happy_life),
        ("behind_our_back", _behind_our_back),
        ("takeover", _takeover),
        ("to_pull_request", goals_runs.to_pull_request),
        ("live_runs", goals_runs.live_runs),
        ("limits", goals_runs.limits),
        ("stops", goals_runs.stops),
        ("webhook", goals_runs.webhook),
        ("daytona_simulator", _simulator),
    )
    return [row for needed, make in makers if measured.get(needed) for row in make(measured)]


def _steady(measured: Measured) -> list[Row]:
    size, ours, base = _largest(measured, "steady")
    scenario = f"created to POST at Daytona, 45/s, {size} present"
    found = [
        timed(scenario, "p50", "ms", (ours, base, "p50_ms"), (15, 1.5)),
        timed(scenario, "p99", "ms", (ours, base, "p99_ms"), (50, 2)),
    ]
    aside, (_, ours, base) = "the same, applied by hand", _largest(measured, "by_hand")
    if ours:
        found += [
            timed(aside, "p50", "ms", (ours, base, "p50_ms"), (15, math.inf)),
            timed(aside, "p99", "ms", (ours, base, "p99_ms"), (50, math.inf)),
        ]
    return found


def _burst(measured: Measured) -> list[Row]:
    ours, base = measured["burst"]["operator"], measured["burst"]["baseline"]
    if not ours:
        return []
    scenario = f"burst of {ours[0]['count']}"
    return [
        timed(scenario, "last POST", "s", (ours, base, "last_post_s"), (math.inf, 1.3)),
        timed(scenario, "p99", "ms", (ours, base, "p99_ms"), (1500, math.inf)),
        timed(
            scenario, "CPU per resource", "ms", (ours, base, "cpu_ms_per_resource"), (4, math.inf)
        ),
    ]


def _idle(measured: Measured) -> list[Row]:
    size, figures = _largest_idle(measured)
    scenario = f"{size} idle"
    kubernetes = figures["kubernetes"]
    # A watch is counted when it ends: each is taken up again every few minutes.
    others = sum(
        count
        for name, count in kubernetes.items()
        if "leases" not in name and not name.startswith("WATCH ")
    )
    calls = figures["daytona"]
    ticks = math.ceil(figures["seconds"] / (_TICK / _JITTER))
    # A renewal is a look at the sandbox and the call itself.
    allowed = math.ceil(int(size) / 200) * ticks + 2 * calls.get("renew", 0)
    return [
        limited(scenario, "memory", "MiB", [figures["rss_mib"]], 160),
        limited(scenario, "memory, peak", "MiB", [figures["peak_mib"]], 220),
        limited(scenario, "share of a core", "%", [figures["cpu_share"] * 100], 4),
        limited(scenario, "size of /metrics", "kB", [figures["metrics_kb"]], 200),
        limited(scenario, "time of a scrape, median", "ms", [figures["metrics_ms"]], 50),
        limited(scenario, "Kubernetes requests but Leases", "", [others], 0),
        limited(
            scenario,
            "Daytona calls but pages and renewals",
            "",
            [max(0, sum(calls.values()) - allowed)],
            0,
        ),
    ]


def _start(measured: Measured) -> list[Row]:
    size, ours, base = _largest(measured, "start")
    scenario = f"start with {size}"
    return [
        timed(scenario, "CPU until all is listed", "s", (ours, base, "cpu_ready_s"), (8, math.inf)),
        timed(scenario, "CPU until nothing is left to do", "s", (ours, base, "cpu_quiet_s"), None),
        limited(scenario, _BLOCKED, "ms", each_of(ours, "block_ms"), 150, worst=True),
        limited(scenario, "of it by its own code", "ms", each_of(ours, "block_own_cpu_ms"), None),
        timed(
            scenario, "new resource served", "ms", (ours, base, "new_served_ms"), (1000, math.inf)
        ),
        timed(scenario, "process start to first served", "s", (ours, base, "first_served_s"), None),
    ]


def _tick(measured: Measured) -> list[Row]:
    size, figures = _largest_idle(measured)
    scenario = f"one fleet tick of {size}"
    rows = [limited(scenario, "CPU", "s", figures["tick_cpu_s"], 0.4)]
    if "tick_delays" in figures:
        delays = figures["tick_delays"]
        rows += [
            limited(scenario, _BLOCKED, "ms", [delays["block_ms"]], 20),
            limited(scenario, "of it by its own code", "ms", [delays["block_own_cpu_ms"]], None),
        ]
    return rows


def _growth(measured: Measured) -> list[Row]:
    sizes = measured["sizes"]
    if len(sizes) < 2:
        return []
    empty = measured["empty"]
    curves: dict[str, Callable[[Measured], float]] = {
        "CPU of a start": lambda each: (
            _middle(each["operator"]["start"], "cpu_ready_s") - empty["cpu_s"]
        ),
        "memory": lambda each: each["operator"]["idle"]["rss_mib"] - empty["rss_mib"],
        "CPU of a fleet tick": lambda each: (
            Spread.of(each["operator"]["idle"]["tick_cpu_s"]).median
        ),
        "latency p50 at 45/s": lambda each: _middle(each["operator"]["steady"], "p50_ms"),
    }
    return [
        limited(
            "growth with the number of resources",
            f"exponent of {name}",
            "",
            [_exponent({int(size): curve(each) for size, each in sizes.items()})],
            1.1,
        )
        for name, curve in curves.items()
    ]


def _happy_life(measured: Measured) -> list[Row]:
    figures = measured["happy_life"]
    return [
        limited("happy life without a run", "writes to the API server", "", [figures["writes"]], 6),
        limited("happy life without a run", "Daytona calls", "", [figures["calls"]], 8),
    ]


def _behind_our_back(measured: Measured) -> list[Row]:
    figures = measured["behind_our_back"]
    tick = _TICK * _JITTER
    found = []
    for how, words in (("stop", "stopped"), ("destroy", "vanished")):
        scenario = f"{words} behind our back"
        found += [
            limited(scenario, "noticed", "s", figures[how]["noticed_s"], tick, worst=True),
            limited(
                scenario, "usable again", "s", figures[how]["usable_s"], 2 * tick + 15, worst=True
            ),
        ]
    return found


def _takeover(measured: Measured) -> list[Row]:
    times = measured["takeover"]["served_s"]
    scenario = f"replica killed, {len(times)} times"
    return [limited(scenario, "its resources served", "s", times, 20, worst=True)]


def _simulator(measured: Measured) -> list[Row]:
    figures = measured["daytona_simulator"]
    scenario = f"the Daytona simulator with {figures['sandboxes']} sandboxes"
    return [
        limited(scenario, "memory", "MiB", [figures["rss_mib"]], 300),
        limited(scenario, "a page of 200, p99", "ms", [figures["page_ms_p99"]], 20),
        limited(scenario, "processes of idle sandboxes", "", [figures["processes"]], 0),
    ]


def _largest(measured: Measured, scenario: str) -> tuple[str, list[Measured], list[Measured]]:
    size = max(measured["sizes"], key=int)
    found = measured["sizes"][size]
    return size, found["operator"][scenario], found["baseline"][scenario]


def _largest_idle(measured: Measured) -> tuple[str, Measured]:
    size = max(measured["sizes"], key=int)
    return size, measured["sizes"][size]["operator"]["idle"]


def _middle(rounds: Sequence[Measured], name: str) -> float:
    return Spread.of(each_of(rounds, name)).median


def _exponent(points: Mapping[int, float]) -> float:
    """Return the slope of the best line through the points, both axes logarithmic."""
    logs = [(math.log(size), math.log(max(value, 1e-9))) for size, value in points.items()]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum(
        (x - mean_x) ** 2 for x, _ in logs
    )
