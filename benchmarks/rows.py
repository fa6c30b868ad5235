"""A row of the table: one figure, its goal, and whether it is met. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from meters import Spread

Measured = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, its goal, and the baseline's figure where there is one."""

    scenario: str
    figure: str
    unit: str
    value: Spread
    goal: str
    met: bool | None
    baseline: Spread | None = None
    ratio: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return asdict(self)


def timed(
    scenario: str,
    figure: str,
    unit: str,
    source: tuple[Sequence[Measured], Sequence[Measured], str],
    goal: tuple[float, float] | None,
) -> Row:
    """Return a figure beside the baseline's; the goal is a limit and a ratio."""
    ours, base, name = source
    value, baseline = Spread.of(each_of(ours, name)), Spread.of(each_of(base, name))
    ratio = value.median / baseline.median if baseline.median else None
    if goal is None:
        return Row(scenario, figure, unit, value, "", None, baseline, ratio)
    limit, times = goal
    words = [f"≤ {limit:g} {unit}"] * (limit < math.inf) + [f"≤ {times:g} x"] * (times < math.inf)
    met = value.median <= limit and (ratio is None or ratio <= times)
    return Row(scenario, figure, unit, value, " and ".join(words), met, baseline, ratio)


def limited(
    scenario: str,
    figure: str,
    unit: str,
    values: Sequence[float],
    limit: float | None,
    *,
    worst: bool = False,
) -> Row:
    """Return a figure that must not be above a limit: its median, or even its worst."""
    value = Spread.of(values)
    if limit is None:
        return Row(scenario, figure, unit, value, "", None)
    met = (value.high if worst else value.median) <= limit
    words = f"≤ {limit:g} {unit}".rstrip() + (", always" if worst else "")
    return Row(scenario, figure, unit, value, words, met)


def at_least(scenario: str, figure: str, unit: str, value: float, limit: float) -> Row:
    """Return a figure that must not be below a limit."""
    words = f"≥ {limit:g} {unit}".rstrip()
    return Row(scenario, figure, unit, Spread.of([value]), words, value >= limit)


def each_of(rounds: Sequence[Measured], name: str) -> list[float]:
    """Return one figure of all rounds."""
    return [each[name] for each in rounds]
