"""Rules about sandboxes that hold at every moment."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from issuesandbox.api.names import ANNOTATION_FORCE_FINALIZE, FINALIZER
from issuesandbox.local.checker.evidence import Evidence, Observation, Violation
from issuesandbox.local.checker.journals import StateChange
from issuesandbox.local.checker.resources import (
    Resource,
    annotation,
    leaves_sandbox,
    meta,
    resources,
)
from issuesandbox.local.checker.sandboxes import (
    ENDED,
    by_resource,
    is_later,
    is_own,
    issue_of,
)

# The one exception: own sandboxes that Daytona refuses to delete, one of which holds the name.
_NEXT_GENERATION = re.compile(r"-g[1-3]$")
# Phases in which a sandbox is used; how a run ended is told also when its sandbox is gone.
_IN_USE = frozenset({"Idle", "Preparing", "Executing", "Collecting", "Publishing"})


def one_live_sandbox(evidence: Evidence) -> Iterator[Violation]:
    """At no moment two live sandboxes for one issue."""
    live: dict[str, set[str]] = {}
    for change in evidence.daytona.states:
        if not is_own(evidence, change.labels):
            continue
        issue = issue_of(change.labels)
        others = live.setdefault(issue, set())
        was_live = change.sandbox in others
        others.discard(change.sandbox)
        if change.after in ENDED:
            continue
        born_by_us = not was_live and change.before is None and change.cause != "admin"
        if others and born_by_us and not _is_allowed_beside(evidence, change, others):
            named = ", ".join(sorted(others))
            text = f"sandbox {change.sandbox} was created while {named} was live"
            yield Violation("one-live-sandbox", change.at, issue, text)
        others.add(change.sandbox)


def id_before_use(evidence: Evidence) -> Iterator[Violation]:
    """No resource is further than Booting before the id of its sandbox is written down."""
    for resource in resources(evidence):
        for observation in resource.history:
            status = observation.object.get("status") or {}
            known = (status.get("sandbox") or {}).get("id")
            if status.get("phase") in _IN_USE and not known:
                text = f"{status['phase']} without the id of a sandbox"
                yield Violation("id-before-use", observation.moment.at, resource.name, text)


def finalizer_last(evidence: Evidence) -> Iterator[Violation]:
    """No finalizer is released over a live sandbox or a create that may still land."""
    by_uid = by_resource(evidence)
    for resource in resources(evidence):
        released = _release(resource)
        if released is None or _may_leave_sandbox(released):
            continue
        for life in by_uid.get(resource.uid, ()):
            if life.is_live_at(released.moment):
                text = f"finalizer released while sandbox {life.id} was live"
            elif is_later(life.birth, released.moment) and not life.was_planted:
                text = f"finalizer released, and then sandbox {life.id} was created"
            else:
                continue
            yield Violation("finalizer-last", released.moment.at, resource.name, text)


def _is_allowed_beside(evidence: Evidence, birth: StateChange, others: Collection[str]) -> bool:
    """Tell whether a birth is that of a next generation, beside what could not be deleted."""
    refused = {
        call.sandbox
        for call in evidence.daytona.calls
        if call.kind == "sandbox.delete" and call.seq < birth.seq and (call.status or 500) >= 400
    }
    return bool(_NEXT_GENERATION.search(birth.name)) and refused.issuperset(others)


def _release(resource: Resource) -> Observation | None:
    """Return the first sight of a resource that had our finalizer and has it no more."""
    held = False
    for observation in resource.history:
        if FINALIZER in (meta(observation.object).get("finalizers") or ()):
            held = True
        elif held:
            return observation
        if observation.kind == "DELETED":
            return observation
    return None


def _may_leave_sandbox(released: Observation) -> bool:
    forced = annotation(released.object, ANNOTATION_FORCE_FINALIZE)
    return leaves_sandbox(released.object) or forced == "true"
