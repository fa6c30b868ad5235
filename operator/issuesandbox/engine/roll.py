"""How many resources are in each phase and condition, kept up to date body by body.

Asked at every scrape, so nothing is read anew then: thousands of bodies would take too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from issuesandbox.clock import Clock
from issuesandbox.ports.resources import ResourceKey

# Phases that a resource is meant to leave soon.
PASSING = frozenset(
    {
        "Pending",
        "Booting",
        "Preparing",
        "Executing",
        "Collecting",
        "Publishing",
        "Finalizing",
        "Stopping",
    }
    | {"Deleting"}
)

Condition = tuple[str, str, str]


class _Marks(NamedTuple):
    phase: str
    conditions: tuple[Condition, ...]

    @property
    def held_back(self) -> bool:
        """Tell whether the resource waits for people or for its turn, for as long as it takes."""
        return any(each[:2] == ("Admitted", "False") for each in self.conditions)


class Roll:
    """The marks of every resource; equal ones are held once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._marks: dict[ResourceKey, _Marks] = {}
        self._shared: dict[_Marks, _Marks] = {}
        self._moved: dict[ResourceKey, float] = {}
        self.phases: Counter[str] = Counter()
        self.conditions: Counter[Condition] = Counter()

    def put(self, key: ResourceKey, body: Mapping[str, Any]) -> None:
        """Take note of a body that is new or has changed."""
        status = body.get("status") or {}
        conditions = sorted(
            (each["type"], each["status"], each["reason"]) for each in status.get("conditions", ())
        )
        marks = _Marks(status.get("phase") or "Pending", tuple(conditions))
        marks = self._shared.setdefault(marks, marks)
        self._replace(key, marks)
        if marks.phase in PASSING and not marks.held_back:
            self._moved[key] = max(_moments(body), default=self._clock.now().timestamp())

    def drop(self, key: ResourceKey) -> None:
        """Forget a resource that is gone."""
        self._replace(key, None)
        if len(self._shared) > 2 * len(self._marks) + 100:
            self._shared = {each: each for each in self._marks.values()}

    def oldest(self) -> dict[str, float]:
        """Return for how long nothing has moved for the slowest resource of each passing phase."""
        now, found = self._clock.now().timestamp(), dict.fromkeys(PASSING, 0.0)
        for key, moved in self._moved.items():
            phase = self._marks[key].phase
            found[phase] = max(found[phase], now - moved)
        return found

    def _replace(self, key: ResourceKey, marks: _Marks | None) -> None:
        before = self._marks.pop(key, None)
        self._moved.pop(key, None)
        if before is not None:
            self.phases[before.phase] -= 1
            self.conditions.subtract(before.conditions)
        if marks is not None:
            self._marks[key] = marks
            self.phases[marks.phase] += 1
            self.conditions.update(marks.conditions)


def _moments(body: Mapping[str, Any]) -> Iterator[float]:
    """Return when anything was last seen to move."""
    metadata, status = body["metadata"], body.get("status") or {}
    texts = [
        metadata.get("deletionTimestamp") or metadata.get("creationTimestamp"),
        (status.get("run") or {}).get("startedAt"),
        (status.get("sandbox") or {}).get("stateSince"),
        (status.get("intent") or {}).get("at"),
        *(each.get("lastTransitionTime") for each in status.get("conditions", ())),
    ]
    for text in texts:
        if text:
            yield datetime.fromisoformat(text).timestamp()
