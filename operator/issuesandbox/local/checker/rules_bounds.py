"""Bounds in time: how soon a stop, a time-out and a silence take effect.

A feature flag that is off gives one of them up, for the resources it is off for; which one is
written here and nowhere else, and no other rule ever lapses with a flag. Judged on request: a
test that cuts the operator off from Daytona cannot expect it to be in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from issuesandbox.api.durations import Duration
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.domain.flags import Flag
from issuesandbox.local.checker.evidence import Evidence, Observation, Violation
from issuesandbox.local.checker.resources import Resource, is_stopped, resources, run_of
from issuesandbox.local.checker.sandboxes import by_resource

STOP_IN_TIME: Final = "stop-in-time"
TIMEOUT_IN_TIME: Final = "timeout-in-time"
SILENCE_IN_TIME: Final = "silence-in-time"

LAPSES: Final[Mapping[Flag, frozenset[str]]] = {
    Flag.DB_BACKED_STOP: frozenset({STOP_IN_TIME}),
    Flag.CANCELLATION_CHECKS: frozenset({STOP_IN_TIME}),
    Flag.HEALTH_PROBE: frozenset(),
    Flag.INACTIVITY_TIMEOUT: frozenset({SILENCE_IN_TIME}),
    Flag.AUTHORITATIVE_TIMEOUT: frozenset({TIMEOUT_IN_TIME}),
}

_STOPPED_WITHIN: Final = 30.0
# A push or a rescue of work may hold the sandbox for as long again.
_ENDED_WITHIN: Final = 60.0
_SLACK: Final = timedelta(seconds=5)


def stop_in_time(evidence: Evidence) -> Iterator[Violation]:
    """A sandbox whose run was stopped does not run 30 s later."""
    for resource in _bound(evidence, STOP_IN_TIME):
        for run_id, seen in resource.runs().items():
            asked = next((each for each in seen if _is_asked_to_stop(each)), None)
            if asked is not None and _runs_after(evidence, resource, asked, _STOPPED_WITHIN):
                text = f"run {run_id}: the sandbox ran {_STOPPED_WITHIN:g} s after the stop"
                yield Violation(STOP_IN_TIME, asked.moment.at, resource.name, text)


def timeout_in_time(evidence: Evidence) -> Iterator[Violation]:
    """A sandbox whose run was out of time does not run a minute later."""
    for resource in _bound(evidence, TIMEOUT_IN_TIME):
        for run_id, seen in resource.runs().items():
            over = next((each for each in seen if _outcome(each) == "TimedOut"), None)
            if over is not None and _runs_after(evidence, resource, over, _ENDED_WITHIN):
                text = f"run {run_id}: the sandbox ran {_ENDED_WITHIN:g} s after the time-out"
                yield Violation(TIMEOUT_IN_TIME, over.moment.at, resource.name, text)


def silence_in_time(evidence: Evidence) -> Iterator[Violation]:
    """A silent agent is ended at its limit, not later."""
    for resource in _bound(evidence, SILENCE_IN_TIME):
        for run_id, seen in resource.runs().items():
            run = run_of(seen[-1].object)
            last, ended = run.get("lastOutputAt"), run.get("finishedAt")
            limit = ((run.get("effective") or {}).get("limits") or {}).get("inactivity")
            if run.get("outcome") != "TimedOut" or not (last and ended and limit):
                continue
            silent = datetime.fromisoformat(ended) - datetime.fromisoformat(last)
            if silent > Duration(limit) + _SLACK:
                text = f"run {run_id}: its agent was silent for {silent} of at most {limit}"
                yield Violation(SILENCE_IN_TIME, seen[-1].moment.at, resource.name, text)


def _bound(evidence: Evidence, rule: str) -> Iterator[Resource]:
    """Return the resources that a rule holds for: no flag that it rests on was ever off."""
    rests_on = {flag.name.lower() for flag, rules in LAPSES.items() if rule in rules}
    for resource in resources(evidence):
        bodies = [IssueSandbox.model_validate(each.object) for each in resource.history]
        sets = [flags.of(body) for flags in evidence.flags for body in bodies]
        if all(getattr(each, name) for each in sets for name in rests_on):
            yield resource


def _is_asked_to_stop(seen: Observation) -> bool:
    run = run_of(seen.object)
    return is_stopped(seen.object) and not run.get("outcome") and not run.get("publish")


def _outcome(seen: Observation) -> str | None:
    outcome: str | None = run_of(seen.object).get("outcome")
    return outcome


def _runs_after(evidence: Evidence, resource: Resource, seen: Observation, limit: float) -> bool:
    """Tell whether a sandbox of the resource ran all the time from a sight to its limit."""
    start, end = seen.moment.at, seen.moment.at + limit
    later = [run_of(each.object) for each in resource.history if start < each.moment.at <= end]
    if any(run.get("id") != run_of(seen.object).get("id") for run in later):
        return False  # another run has begun, which needs it
    for life in by_resource(evidence).get(resource.uid, ()):
        before = [change.after for change in life.changes if change.at <= start]
        within = [change for change in life.changes if start < change.at <= end]
        if before and before[-1] == "started" and not within:
            return _lasted(evidence, end)
    return False


def _lasted(evidence: Evidence, end: float) -> bool:
    """Tell whether anything was seen after a moment: a test may end before a limit."""
    sights = [each.moment.at for each in evidence.observations[-1:]]
    changes = [change.at for change in evidence.daytona.states[-1:]]
    return max(sights + changes, default=0.0) > end
