"""Rules about sandboxes that hold at every moment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from issuesandbox.api.names import ANNOTATION_FORCE_FINALIZE, FINALIZER
from issuesandbox.local.checker.evidence import Evidence, Observation, Violation
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

# The one exception: an own sandbox that Daytona refuses to delete and that holds the name.
_NEXT_GENERATION = re.compile(r"-g[1-3]$")


def one_live_sandbox(evidence: Evidence) -> Iterator[Violation]:
    """At no moment two live sandboxes for one issue."""
    live: dict[tuple[str, str], dict[str, str]] = {}
    for change in evidence.daytona.states:
        if not is_own(evidence, change.labels):
            continue
        issue = issue_of(change.labels)
        others = live.setdefault((change.organization, issue), {})
        was_live = others.pop(change.sandbox, None) is not None
        if change.after in ENDED:
            continue
        born_by_us = not was_live and change.before is None and change.cause != "admin"
        if others and born_by_us and not _NEXT_GENERATION.search(change.name):
            text = f"sandbox {change.sandbox} was created while {', '.join(others)} was live"
            yield Violation("one-live-sandbox", change.at, issue, text)
        others[change.sandbox] = change.name


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
