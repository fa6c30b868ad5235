"""The plots of docs/performance.md: latency and memory over the number of resources."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meters import Spread

_COLOURS = {"operator": "tab:blue", "baseline": "tab:grey"}
_MEMORY_GOAL = 160

Sizes = Mapping[int, Mapping[str, Any]]


def draw(measured: Mapping[str, Any], folder: Path) -> bool:
    """Draw both plots into a folder; tell whether there is a library to draw them with."""
    try:
        importlib.import_module("matplotlib").use("Agg")
    except ImportError:
        return False
    plots = importlib.import_module("matplotlib.pyplot")
    sizes = {int(size): found for size, found in measured["sizes"].items()}
    for name, paint in (("latency", _latency), ("memory", _memory)):
        figure, axes = plots.subplots(figsize=(7, 4), layout="constrained")
        paint(axes, sizes)
        axes.set(xscale="log", xlabel="resources present", ylim=(0, None))
        axes.set_xticks(list(sizes), [f"{size:,}" for size in sizes])
        axes.legend()
        figure.savefig(folder / f"performance-{name}.png", dpi=120)
    return True


def _latency(axes: Any, sizes: Sizes) -> None:
    for program, colour in _COLOURS.items():
        for name, style in (("p50", "o-"), ("p99", "s--")):
            spreads = [
                Spread.of([each[f"{name}_ms"] for each in found[program]["steady"]])
                for found in sizes.values()
            ]
            below = [each.median - each.low for each in spreads]
            above = [each.high - each.median for each in spreads]
            axes.errorbar(
                list(sizes),
                [each.median for each in spreads],
                yerr=[below, above],
                fmt=style,
                color=colour,
                capsize=3,
                label=f"{program} {name}",
            )
    axes.set(ylabel="created to POST at Daytona, ms", title="45 new resources a second")


def _memory(axes: Any, sizes: Sizes) -> None:
    for name, label in (("rss_mib", "resident"), ("peak_mib", "peak")):
        values = [found["operator"]["idle"][name] for found in sizes.values()]
        axes.plot(list(sizes), values, "o-", label=f"operator, {label}")
    held = [
        Spread.of([each["rss_mib"] for each in found["baseline"]["start"]]).median
        for found in sizes.values()
    ]
    axes.plot(list(sizes), held, "o-", color=_COLOURS["baseline"], label="baseline, resident")
    axes.axhline(_MEMORY_GOAL, linestyle=":", label="goal for 10,000, resident")
    axes.set(ylabel="MiB", title="Memory of an idle fleet")
