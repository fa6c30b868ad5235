"""What was counted since this process began. Knows names and figures, nothing of what they mean."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from issuesandbox.domain.numbers import FAMILIES, Family

# What strangers could make up must not become a label without end.
_MOST_VALUES = 100
_OTHER = "Other"


@dataclass(slots=True)
class Spread:
    """How often something took how long."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    """How many fell between each bound and the one before; the last is beyond all bounds."""
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, seconds: float) -> None:
        """Take note of one."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class Tally:
    """Counts and times, by family and the values of its labels."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[tuple[str, ...], int]] = {}
        self._spreads: dict[str, dict[tuple[str, ...], Spread]] = {}
        for family in FAMILIES:
            if family.bounds:
                spreads = {each: Spread(family.bounds) for each in family.known}
                self._spreads[family.name] = spreads
            else:
                self._counts[family.name] = dict.fromkeys(family.known, 0)

    def count(self, family: Family, *values: str, by: int = 1) -> None:
        """Count one occurrence, or several."""
        counts = self._counts[family.name]
        key = _bounded(values, counts)
        counts[key] = counts.get(key, 0) + by

    def time(self, family: Family, seconds: float, *values: str) -> None:
        """Take note of how long something took; clocks may disagree, time does not run back."""
        spreads = self._spreads[family.name]
        key = _bounded(values, spreads)
        spread = spreads.get(key)
        if spread is None:
            spread = spreads[key] = Spread(family.bounds)
        spread.add(max(0.0, seconds))

    def counts(self, family: Family) -> Iterator[tuple[tuple[str, ...], int]]:
        """Return how often what occurred."""
        return iter(self._counts[family.name].items())

    def spreads(self, family: Family) -> Iterator[tuple[tuple[str, ...], Spread]]:
        """Return how long what took."""
        return iter(self._spreads[family.name].items())


def _bounded(values: tuple[str, ...], known: Mapping[tuple[str, ...], object]) -> tuple[str, ...]:
    if values in known or len(known) < _MOST_VALUES:
        return values
    return (*values[:-1], _OTHER)
