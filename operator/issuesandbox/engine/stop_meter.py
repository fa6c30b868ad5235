"""How long stops and time-outs take, from the request to the proof, and which take too long.

Reads what was written down; the moment of the request is the one the API server recorded, to the
second, so a time is never told too short. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DesiredState
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunPhase, RunStatus
from issuesandbox.domain import numbers
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.transitions import RUNNING
from issuesandbox.engine.tally import Tally
from issuesandbox.ports.resources import ResourceKey


@dataclass(slots=True)
class _Stop:
    run_id: str
    asked_at: datetime
    dead_at: datetime | None = None
    failed: bool = False


class StopMeter:
    """Follows every stop that this replica carries out, and every run that is out of time."""

    def __init__(self, tally: Tally, timings: Timings) -> None:
        self._tally = tally
        self._stop_limit = timings.stop_promise
        self._timeout_limit = timings.stop_promise + timings.work_hold
        self._stops: dict[str, _Stop] = {}
        self._dead: dict[str, datetime] = {}
        self._timeouts: dict[str, str] = {}
        self._begun: set[str] = set()

    def note(
        self, key: ResourceKey, body: Mapping[str, Any], before: Status, after: Status, at: datetime
    ) -> None:
        """Hear of a status that was written; `body` is the resource as the server has it now."""
        run, old = after.run, before.run
        if run is None:
            return
        known = old is not None and old.id == run.id
        if run.outcome is None:
            if not known:
                self._begun.add(run.id)
            if after.stop_requested_at is not None and before.stop_requested_at is None:
                self._noticed(key, body, run.id, after.stop_requested_at)
            return
        if not known or (old is not None and old.outcome is None):
            self._ended(key, body, run, at)
            self._begun.discard(run.id)
        self._cleaned(key, after, at)

    def look(self, key: ResourceKey, status: Status, now: datetime) -> None:
        """Look at a resource in passing: what takes too long has failed, though it goes on."""
        run, since = status.run, status.stop_requested_at
        if run is None:
            return
        if run.outcome is None and since is not None and run.publish is None:
            stop = self._stops.setdefault(key.uid, _Stop(run.id, since))
            if not stop.failed and now - stop.asked_at > self._stop_limit:
                stop.failed = True
                self._judge(run.id, "failed")
        overdue = run.finished_at is not None and now - run.finished_at > self._timeout_limit
        if self._timeouts.get(key.uid) == run.id and overdue:
            del self._timeouts[key.uid]
            self._tally.count(numbers.TIMEOUT_CLEANUPS, "failed")

    def agent_dead(self, key: ResourceKey, at: datetime) -> None:
        """Hear that nothing of a resource's agent runs any more, by its supervisor's word."""
        stop = self._stops.get(key.uid)
        if stop is None:
            self._dead[key.uid] = at
        elif stop.dead_at is None:
            stop.dead_at = at
            self._tally.time(numbers.STOP_RESPONSE, (at - stop.asked_at).total_seconds())

    def forget(self, key: ResourceKey) -> None:
        """Drop what is known of a resource."""
        for known in (self._stops, self._dead, self._timeouts):
            known.pop(key.uid, None)

    def _noticed(
        self, key: ResourceKey, body: Mapping[str, Any], run_id: str, at: datetime
    ) -> None:
        asked_at = _asked_at(body)
        if asked_at is None:
            self._tally.count(numbers.STOPS, "not_asked")
        stop = self._stops[key.uid] = _Stop(run_id, asked_at or at)
        self._tally.time(numbers.STOP_LOOKUP, (at - stop.asked_at).total_seconds())
        dead_at = self._dead.pop(key.uid, None)
        if dead_at is not None:
            self.agent_dead(key, dead_at)

    def _ended(
        self, key: ResourceKey, body: Mapping[str, Any], run: RunStatus, now: datetime
    ) -> None:
        stop, at = self._stops.pop(key.uid, None), run.finished_at or now
        self._dead.pop(key.uid, None)
        if run.outcome is Outcome.TIMED_OUT:
            self._timeouts[key.uid] = run.id
        if run.outcome is not Outcome.CANCELLED:
            return
        if run.reason == "TooLateToStop":
            self._tally.count(numbers.STOPS, "too_late")
            return
        stop = stop or _Stop(run.id, _asked_at(body) or at)
        took = (at - stop.asked_at).total_seconds()
        if stop.dead_at is None:
            # Its sandbox was stopped before the kill was answered, or there was no agent yet.
            self._tally.time(numbers.STOP_RESPONSE, took)
        self._tally.time(numbers.STOP_CONFIRM, took)
        if not stop.failed:
            late = took > self._stop_limit.total_seconds()
            self._judge(run.id, "failed" if late else "confirmed")

    def _judge(self, run_id: str, result: str) -> None:
        self._tally.count(numbers.STOPS, result)
        if run_id not in self._begun:
            self._tally.count(numbers.CROSS_STOPS, result)

    def _cleaned(self, key: ResourceKey, after: Status, at: datetime) -> None:
        run, sandbox = after.run, after.sandbox
        assert run is not None, "only what ran is cleaned up"
        if self._timeouts.get(key.uid) != run.id:
            return
        running = sandbox is not None and sandbox.id is not None and sandbox.state == RUNNING
        if running and run.phase is not RunPhase.FINISHED:
            return
        del self._timeouts[key.uid]
        self._tally.count(numbers.TIMEOUT_CLEANUPS, "confirmed")
        took = (at - (run.finished_at or at)).total_seconds()
        self._tally.time(numbers.TIMEOUT_CLEANUP_TIME, took)


def _asked_at(body: Mapping[str, Any]) -> datetime | None:
    """Return when somebody asked for the end, as the server recorded it; None: nobody did."""
    resource = IssueSandbox.model_validate(body)
    spec, run = resource.spec, resource.status.run
    if resource.metadata.deletion_timestamp is not None:
        return resource.metadata.deletion_timestamp
    if spec.desired_state is DesiredState.STOPPED:
        return max(_times(body, "f:desiredState"), default=resource.status.stop_requested_at)
    if spec.run is not None and run is not None and spec.run.trigger != run.trigger:
        return max(_times(body, "f:run", "f:trigger"), default=resource.status.stop_requested_at)
    return None


def _times(body: Mapping[str, Any], *path: str) -> Iterator[datetime]:
    """Return when the writers of a field of the spec last wrote."""
    for entry in body["metadata"].get("managedFields") or ():
        fields: Any = entry.get("fieldsV1") or {}
        for name in ("f:spec", *path):
            fields = fields.get(name) if isinstance(fields, Mapping) else None
        if fields is not None and "time" in entry:
            yield datetime.fromisoformat(entry["time"])
