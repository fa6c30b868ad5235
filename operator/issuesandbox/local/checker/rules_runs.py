"""Rules about runs that hold at every moment: outcomes, the publish gate, and what follows it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from issuesandbox.local.checker.evidence import Evidence, Object, Observation, Violation
from issuesandbox.local.checker.journals import ZERO_COMMIT, Act, Push
from issuesandbox.local.checker.resources import (
    Resource,
    is_deleting,
    is_paused,
    is_stopped,
    pull_request_of,
    resources,
    run_of,
)

# Work that is not published is saved here.
_SAVED = "refs/heads/wip/"


def outcome_once(evidence: Evidence) -> Iterator[Violation]:
    """Every outcome is written once: it never changes and never goes away."""
    for resource in resources(evidence):
        written: dict[str, str] = {}
        for observation in resource.history:
            for run_id, outcome in _outcomes(observation.object):
                first = written.get(run_id)
                if first is not None and outcome != first:
                    text = f"run {run_id} was {first} and became {outcome or 'unfinished'}"
                    yield Violation("outcome-once", observation.moment.at, resource.name, text)
                if outcome is not None:
                    written[run_id] = outcome


def gate_before_stop(evidence: Evidence) -> Iterator[Violation]:
    """No publication is decided once the run was stopped, paused, frozen, late or finished."""
    for resource in resources(evidence):
        for run_id, seen in resource.runs().items():
            index = _gate(seen)
            refusal = None if index is None else _refusal(evidence, seen[: index + 1])
            if index is not None and refusal:
                text = f"run {run_id} was published though {refusal}"
                yield Violation("gate-before-stop", seen[index].moment.at, resource.name, text)


def push_through_gate(evidence: Evidence) -> Iterator[Violation]:
    """Nothing is pushed but the very commit, onto the very tip, that a gate recorded before."""
    gated = {
        (resource.repository, f"refs/heads/{run['branch']}", run["publish"]["commit"]): run
        for resource in resources(evidence)
        for observation in resource.history
        if (run := run_of(observation.object)).get("publish") and run.get("branch")
    }
    for push in evidence.github.pushes if evidence.github else ():
        if push.ref.startswith(_SAVED):
            continue
        decided = gated.get((push.repository, push.ref, push.new))
        flaw = _push_flaw(evidence, push, decided) if decided else "no run had decided that"
        if flaw:
            subject, text = f"{push.repository} {push.ref}", f"{push.new[:12]} pushed: {flaw}"
            yield Violation("push-through-gate", push.at, subject, text)


def no_work_saved_after_stop(evidence: Evidence) -> Iterator[Violation]:
    """A stop keeps unpublished work from being pushed anywhere, and so does a deletion mid-run."""
    for push in evidence.github.pushes if evidence.github else ():
        for resource in resources(evidence):
            run_id = resource.saved_by(push)
            if run_id is not None and _ended_before(evidence, resource, push):
                text = f"{push.ref} was pushed after run {run_id} was told to end"
                yield Violation("no-work-saved-after-stop", push.at, resource.name, text)


def no_pull_request_after_stop(evidence: Evidence) -> Iterator[Violation]:
    """A stop that comes too late for the push still keeps the pull request from being opened."""
    known = resources(evidence)
    for act in evidence.github.acts if evidence.github else ():
        if act.what != "pull_request.opened":
            continue
        for resource in known:
            if _stopped_before(evidence, resource, act):
                text = f"pull request #{act.number} was opened after the stop"
                yield Violation("no-pull-request-after-stop", act.at, resource.name, text)


def _outcomes(resource: Object) -> Iterator[tuple[str, str | None]]:
    run = run_of(resource)
    if run.get("id"):
        yield run["id"], run.get("outcome")
    for past in (resource.get("status") or {}).get("history") or ():
        yield past["id"], past["outcome"]


def _gate(seen: list[Observation]) -> int | None:
    """Return where a run's publication was first seen."""
    decided = (index for index, each in enumerate(seen) if run_of(each.object).get("publish"))
    return next(decided, None)


def _refusal(evidence: Evidence, seen: list[Observation]) -> str | None:
    """Return why a gate should have stayed shut; `seen` ends with the sight that shows it open.

    The resource at the gate's resourceVersion holds every older write, so a stop in it is older.
    """
    moment, resource = seen[-1].moment, seen[-1].object
    run = run_of(resource)
    reasons = {
        "it was stopped": any(is_stopped(each.object) for each in seen),
        "it was paused": is_paused(resource),
        "it had an outcome": any(run_of(each.object).get("outcome") for each in seen[:-1]),
        "its deadline had passed": _is_late(run),
        "everything was frozen": any(
            span.start.at + evidence.in_flight < _seconds(run["publish"]["at"])
            and (span.end is None or moment.at < span.end.at)
            for span in evidence.frozen
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _is_late(run: dict[str, Any]) -> bool:
    deadline = (run.get("deadlines") or {}).get("run")
    return deadline is not None and _seconds(run["publish"]["at"]) > _seconds(deadline)


def _push_flaw(evidence: Evidence, push: Push, run: dict[str, Any]) -> str | None:
    expected = run["publish"]["old"] or ZERO_COMMIT
    if expected.ljust(40, "0") != push.old:
        return f"onto {push.old[:12]}, decided was {expected[:12]}"
    if push.at < _seconds(run["publish"]["at"]) - evidence.in_flight:
        return "before that was decided"
    return None


def _stopped_before(evidence: Evidence, resource: Resource, act: Act) -> bool:
    """Tell whether the run that a pull request belongs to was stopped before it was opened."""
    owners = [seen for seen in resource.history if pull_request_of(seen.object) == act.number]
    if resource.repository != act.repository or not owners:
        return False
    run_id = run_of(owners[0].object)["id"]
    return any(
        is_stopped(seen.object) and act.at > seen.moment.at + evidence.in_flight
        for seen in resource.runs()[run_id]
    )


def _ended_before(evidence: Evidence, resource: Resource, push: Push) -> bool:
    """Tell whether a resource was stopped, or deleted during its run, when a push was decided."""
    known = [each for each in resource.history if each.moment.at + evidence.in_flight < push.at]
    deletion = next((each.object for each in known if is_deleting(each.object)), None)
    if deletion is not None:
        return not run_of(deletion).get("outcome")
    return bool(known) and is_stopped(known[-1].object)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
