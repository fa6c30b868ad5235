"""The rule of the pause: whoever said "hands off" finds nothing touched but what must end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from math import inf

from issuesandbox.local.checker.evidence import Evidence, Moment, Object, Span, Violation
from issuesandbox.local.checker.journals import Act, Call, Push
from issuesandbox.local.checker.resources import (
    Resource,
    is_deleting,
    is_stopped,
    pull_request_of,
    resources,
    run_of,
)
from issuesandbox.local.checker.sandboxes import Life, by_resource, is_later

# Reading changes nothing, and a kill is a command like any other: the journal holds no commands.
# That a run or its agent began is read from the resource instead.
_HARMLESS = frozenset(
    {
        "sandbox.get",
        "sandbox.list",
        "sandbox.toolbox_url",
        "toolbox.execute",
        "toolbox.home_dir",
        "toolbox.work_dir",
        "toolbox.files.list",
        "toolbox.files.info",
        "toolbox.files.download",
        "toolbox.git.status",
        "toolbox.session.list",
        "toolbox.session.get",
        "toolbox.session.command",
        "toolbox.session.logs",
        "toolbox.session.delete",
    }
)
_BEGINNINGS = {"startedAt": "run {} began", "agentStartedAt": "the agent of run {} was started"}
_SPOKEN = frozenset({"pull_request.opened", "issue_comment.created", "issue_comment.edited"})


def hands_off_while_paused(evidence: Evidence) -> Iterator[Violation]:
    """While paused or frozen only kill, stop and delete of what was asked to end."""
    by_uid = by_resource(evidence)
    known = resources(evidence)
    yield from _orphans_touched(evidence, by_uid, {each.uid for each in known})
    for resource in known:
        for span in (*resource.paused(), *evidence.frozen):
            for life in by_uid.get(resource.uid, ()):
                yield from _calls_during(evidence, resource, life, span)
            yield from _acts_during(evidence, resource, span)
            yield from _beginnings_during(evidence, resource, span)


def _orphans_touched(
    evidence: Evidence, by_uid: Mapping[str, Sequence[Life]], known: set[str]
) -> Iterator[Violation]:
    """Nobody asked for the end of what no resource owns, so a freeze holds that as well."""
    orphans = {life.id for uid, lives in by_uid.items() if uid not in known for life in lives}
    for call in evidence.daytona.calls:
        if call.sandbox not in orphans or call.kind in _HARMLESS:
            continue
        if any(_is_in(evidence, call, span) for span in evidence.frozen):
            text = f"{call.kind} of sandbox {call.sandbox}, which no resource owns, while frozen"
            yield Violation("hands-off-while-paused", call.at, str(call.sandbox), text)


def _calls_during(
    evidence: Evidence, resource: Resource, life: Life, span: Span
) -> Iterator[Violation]:
    for call in evidence.daytona.calls:
        if call.sandbox != life.id or call.kind in _HARMLESS or not _is_in(evidence, call, span):
            continue
        if not any(_allows(seen, call) for seen in _sights_at(evidence, resource, call)):
            text = f"{call.kind} of sandbox {life.id} while paused or frozen"
            yield Violation("hands-off-while-paused", call.at, resource.name, text)


def _acts_during(evidence: Evidence, resource: Resource, span: Span) -> Iterator[Violation]:
    pulls = {pull_request_of(seen.object) for seen in resource.history}
    about = {resource.number, *pulls} - {None}
    for act in evidence.github.acts if evidence.github else ():
        concerned = act.repository == resource.repository and act.number in about
        if concerned and act.what in _SPOKEN and _is_in(evidence, act, span):
            text = f"{act.what} on #{act.number} while paused or frozen"
            yield Violation("hands-off-while-paused", act.at, resource.name, text)
    for push in evidence.github.pushes if evidence.github else ():
        if resource.saved_by(push) is not None and _is_in(evidence, push, span):
            text = f"{push.ref} pushed while paused or frozen"
            yield Violation("hands-off-while-paused", push.at, resource.name, text)


def _beginnings_during(evidence: Evidence, resource: Resource, span: Span) -> Iterator[Violation]:
    first, last = span.start.at + evidence.in_flight, span.end.at if span.end else inf
    for run_id, seen in resource.runs().items():
        for name, words in _BEGINNINGS.items():
            written = {run_of(each.object).get(name) for each in seen} - {None}
            for at in sorted(datetime.fromisoformat(str(text)).timestamp() for text in written):
                if first < at < last - evidence.in_flight:
                    text = f"{words.format(run_id)} while paused or frozen"
                    yield Violation("hands-off-while-paused", at, resource.name, text)


def _is_in(evidence: Evidence, entry: Call | Act | Push, span: Span) -> bool:
    """Tell whether something surely happened inside a span, not decided before it."""
    decided_within = entry.at > span.start.at + evidence.in_flight
    return decided_within and _came_after(entry, span.start) and _came_before(evidence, entry, span)


def _came_before(evidence: Evidence, entry: Call | Act | Push, span: Span) -> bool:
    # A watch tells late: the operator may hear of the end before the recorder does.
    end = span.end
    return end is None or (not _came_after(entry, end) and entry.at <= end.at - evidence.in_flight)


def _came_after(entry: Call | Act | Push, moment: Moment) -> bool:
    if isinstance(entry, Call):
        return is_later(entry, moment)
    return entry.at > moment.at if moment.github is None else entry.seq > moment.github


def _sights_at(evidence: Evidence, resource: Resource, call: Call) -> list[Object]:
    """Return what the resource was, or may have been, when a call was made."""
    certain = [seen for seen in resource.history if is_later(call, seen.moment)]
    # A watch tells late: what was seen soon after the call may have been written before it.
    soon = call.at + evidence.in_flight
    possible = [seen for seen in resource.history[len(certain) :] if seen.moment.at <= soon]
    return [seen.object for seen in (*certain[-1:], *possible)]


def _allows(seen: Object, call: Call) -> bool:
    """Tell whether a resource asks for the end that a call brings."""
    if call.kind == "sandbox.delete":
        return is_deleting(seen)
    return call.kind == "sandbox.stop" and (is_stopped(seen) or bool(run_of(seen).get("outcome")))
