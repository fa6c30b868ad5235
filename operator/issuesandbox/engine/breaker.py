"""The breaker: while too many sandboxes are unwell at once, none of them is replaced.

So many failures are rather Daytona's trouble than theirs, and a replacement costs what lies
on the disk. Unwell is what the fleet view shows as broken, and what the resources say of theirs:
that it does not answer, or that it has been on its way for long. What nobody wants replaced does
not count: such a sandbox may stay broken for a day, and says nothing of the others. Without a
fresh view nobody can tell how many there are, so nothing is replaced either.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from issuesandbox.api.conditions import ConditionType
from issuesandbox.api.durations import Duration
from issuesandbox.api.spec import DesiredState
from issuesandbox.clock import Clock
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.states import sight_of_state
from issuesandbox.domain.steps_making import EXHAUSTED
from issuesandbox.domain.table import TABLE, Step
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.fleet import Fleet
from issuesandbox.ports.resources import ResourceKey

# What tells since when a step has been waited for.
_BEGAN = {Step.WAIT: "stateSince", Step.START: "startAskedAt"}
_GIVEN_UP = (ConditionType.READY, EXHAUSTED)
_FEW = 3
_SHARE = 5


class Breaker:
    """Counts what is unwell, body by body."""

    def __init__(self, fleet: Fleet, clock: Clock, timings: Timings) -> None:
        self._fleet = fleet
        self._clock = clock
        self._timings = timings
        self._written_off: set[str] = set()
        """The resources whose sandbox nobody wants replaced."""
        self._retired: dict[str, frozenset[str]] = {}
        """The sandboxes that their resource gave up, though they may still be there."""
        self._failing: set[str] = set()
        self._late_at: dict[str, datetime] = {}
        """From when on a sandbox in transition is one that may never end it."""

    def put(self, key: ResourceKey, body: Mapping[str, Any]) -> None:
        """Take note of a resource that is new or has changed."""
        self.drop(key)
        status = body.get("status") or {}
        sandbox, run = status.get("sandbox") or {}, status.get("run") or {}
        if _is_written_off(body, status, run):
            self._written_off.add(key.uid)
            return
        if status.get("retired"):
            self._retired[key.uid] = frozenset(each["id"] for each in status["retired"])
        if run.get("phase") == "Preparing" and (run.get("probeMisses") or run.get("restarts")):
            self._failing.add(key.uid)
        if sandbox.get("failedStarts"):
            self._failing.add(key.uid)
        cell = TABLE[sight_of_state(sandbox.get("state"))].running
        since = sandbox.get(_BEGAN.get(cell.step, ""))
        if since and cell.limit is not None:
            limit: timedelta = getattr(self._timings, cell.limit)
            if cell.limit == "start_limit":
                limit = _own_start_limit(body) or limit
            # Half of its limit: they come one by one, and each that is replaced is well again.
            self._late_at[key.uid] = datetime.fromisoformat(since) + limit / 2

    def drop(self, key: ResourceKey) -> None:
        """Forget a resource that is gone."""
        self._written_off.discard(key.uid)
        self._retired.pop(key.uid, None)
        self._failing.discard(key.uid)
        self._late_at.pop(key.uid, None)

    @property
    def is_open(self) -> bool:
        """Tell whether so many are known to be unwell that replacing them must be a mistake."""
        view = self._fleet.view
        if view is None:
            return False
        now = self._clock.now()
        late = {uid for uid, moment in self._late_at.items() if moment <= now}
        broken = {uid for uid, ids in view.broken.items() if self._counts(uid, ids)}
        return len(broken | self._failing | late) > max(_FEW, view.size // _SHARE)

    def _counts(self, uid: str, broken: frozenset[SandboxId]) -> bool:
        return uid not in self._written_off and not broken <= self._retired.get(uid, frozenset())

    @property
    def why(self) -> str | None:
        """Return why nothing may be replaced now, or None if it may."""
        if self._fleet.view is None:
            return "there is no fresh list of the others to tell how many are"
        if self.is_open:
            return "so many are unwell at once that it must be Daytona's trouble"
        return None


def _is_written_off(
    body: Mapping[str, Any], status: Mapping[str, Any], run: Mapping[str, Any]
) -> bool:
    """Tell whether a resource is at its end, or wants its sandbox at rest."""
    spec = body.get("spec") or {}
    if "deletionTimestamp" in body["metadata"] or spec.get("desiredState") == DesiredState.STOPPED:
        return True
    asked = spec.get("run")
    if asked is not None and "outcome" in run and asked.get("trigger") == run.get("trigger"):
        return True
    conditions = status.get("conditions") or ()
    return any((each["type"], each["reason"]) == _GIVEN_UP for each in conditions)


def _own_start_limit(body: Mapping[str, Any]) -> timedelta | None:
    sandbox = (body.get("spec") or {}).get("sandbox") or {}
    with suppress(ValueError):  # of another version than this program
        return Duration(sandbox["startTimeout"]) if sandbox.get("startTimeout") else None
    return None
