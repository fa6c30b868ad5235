"""What a change of the status says happened, as numbers. Pure.

Every write of a status is guarded by the version it was decided on, so each change happens
once, whoever makes it: counting changes counts nothing twice. Apart from the rules that decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from issuesandbox.api.conditions import ConditionType, find
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunStatus
from issuesandbox.api.status_sandbox import IntentKind, SandboxDeletion, SandboxStatus
from issuesandbox.domain import numbers
from issuesandbox.domain.deletion_record import MAX_RETRIES
from issuesandbox.domain.numbers import Family
from issuesandbox.domain.runs.chapters import WORKSPACE_LOST
from issuesandbox.domain.runs.rescue import is_saved

_LIMITS: Final = {"InactivityTimeout": "inactivity", "AgentTimeout": "agent", "RunTimeout": "run"}
_PUBLISHED: Final = {
    "TooLateToStop": "too_late",
    "BranchMoved": "moved",
    "PullRequestFailed": "no_pull_request",
    "PublishFailed": "failed",
}
_STARTABLE: Final = frozenset(
    {"stopped", "paused", "archived", "starting", "resuming", "restoring", "stopping"}
)
_UNPUBLISHED: Final = frozenset({Outcome.CANCELLED, Outcome.TIMED_OUT})
RUNNING: Final = "started"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that happened; with `seconds`, how long it took."""

    family: Family
    values: tuple[str, ...] = ()
    seconds: float | None = None
    by: int = 1


def facts(before: Status, after: Status, now: datetime) -> Iterator[Fact]:
    """Return what happened between two states of a resource."""
    if after.run is not None:
        same = before.run is not None and before.run.id == after.run.id
        yield from _of_the_run(before.run if same else None, after.run)
        ended = same and before.run is not None and before.run.outcome is None
        last = after.history[0].reason if after.history else None
        if ended and after.run.outcome is Outcome.SUCCEEDED and last == "InactivityTimeout":
            yield Fact(numbers.FALSE_STALLS)
    if _has_lost(after) and not _has_lost(before):
        yield Fact(numbers.WORK, ("lost",))
    yield from _of_the_sandbox(before, after)
    if after.sandbox_deletion is not None and after.sandbox_deletion != before.sandbox_deletion:
        yield from _of_the_deletion(before, after.sandbox_deletion, now)


def _of_the_run(old: RunStatus | None, new: RunStatus) -> Iterator[Fact]:
    if old is not None and old.outcome is not None and old.outcome is not new.outcome:
        yield Fact(numbers.LATE_RESULTS, ("taken",))
    if new.outcome is not None and (old is None or old.outcome is None):
        yield from _of_the_end(new, new.outcome)
    if old is not None:
        yield from _of_the_work(old, new)


def _of_the_end(run: RunStatus, outcome: Outcome) -> Iterator[Fact]:
    reason = run.reason or ("PullRequest" if outcome is Outcome.SUCCEEDED else "Unknown")
    yield Fact(numbers.RUNS, (outcome.value, reason))
    ended = run.finished_at or run.started_at
    took = (ended - run.started_at).total_seconds()
    yield Fact(numbers.RUN_TIME, (outcome.value,), took)
    if reason in _LIMITS:
        yield Fact(numbers.LIMITS, (_LIMITS[reason],))
    if reason == "InactivityTimeout" and run.last_output_at is not None:
        yield Fact(numbers.STALLS, (), (ended - run.last_output_at).total_seconds())
    if run.publish is not None:
        good = "pull_request" if run.pull_request is not None else "pushed"
        yield Fact(numbers.PUBLISHES, (_PUBLISHED.get(reason, good),))


def _of_the_work(old: RunStatus, new: RunStatus) -> Iterator[Fact]:
    if new.saved_work is not None and new.saved_work != old.saved_work:
        yield Fact(numbers.WORK, ("saved",))
    if old.outcome in _UNPUBLISHED and new.commit is not None and old.commit is None:
        yield Fact(numbers.LATE_RESULTS, ("ignored",))
    began = old.agent_started_at is not None
    if began and new.recreations > old.recreations and not is_saved(old):
        yield Fact(numbers.WORK, ("lost",))
    given_up = new.outcome is not None and old.outcome is None and new.reason == "SandboxLost"
    if began and given_up and not is_saved(old):
        yield Fact(numbers.WORK, ("lost",))


def _has_lost(status: Status) -> bool:
    """Tell whether work of the run is written down as not saved."""
    collected = find(status.conditions, ConditionType.CHANGES_COLLECTED)
    return collected is not None and collected.reason == WORKSPACE_LOST


def _of_the_sandbox(before: Status, after: Status) -> Iterator[Fact]:
    old, new = before.sandbox or SandboxStatus(), after.sandbox or SandboxStatus()
    if new.id is not None and new.id != old.id:
        yield Fact(numbers.ATTEMPTS, ("first" if (new.attempt or 1) <= 1 else "another",))
    if new.state == RUNNING and (old.id != new.id or old.state != RUNNING):
        rung = _rung(before, old, new)
        if rung is not None:
            yield Fact(numbers.RECOVERIES, (rung, numbers.OK))
    gone = {each.id for each in before.retired}
    given_up = any(each.reason == "Replaced" and each.id not in gone for each in after.retired)
    if given_up and old.state != RUNNING:
        rung = _rung(before, old, old)
        if rung is not None:
            yield Fact(numbers.RECOVERIES, (rung, "failed"))


def _rung(before: Status, old: SandboxStatus, new: SandboxStatus) -> str | None:
    """Return which step of the ladder brought, or was to bring, the sandbox up; None: the first."""
    if before.intent is not None and before.intent.kind is IntentKind.RECOVER:
        return "recover"
    if old.id == new.id and old.state in _STARTABLE:
        return "start"
    return "replace" if (new.attempt or 1) > 1 else None


def _of_the_deletion(before: Status, new: SandboxDeletion, now: datetime) -> Iterator[Fact]:
    old = before.sandbox_deletion
    if new.skipped and not (old is not None and old.skipped):
        yield Fact(numbers.DELETIONS, ("skipped",))
    if new.success and not (old is not None and old.success):
        yield Fact(numbers.DELETIONS, ("deleted" if "deleted" in new.message else "gone",))
        intent = before.intent
        if intent is not None and intent.kind is IntentKind.DELETE:
            yield Fact(numbers.DELETION_TIME, (), (now - intent.at).total_seconds())
    if _has_failed(new) and not (old is not None and _has_failed(old)):
        yield Fact(numbers.DELETIONS, ("failed",))
    retries = new.retries_used - (old.retries_used if old is not None else 0)
    if retries > 0:
        yield Fact(numbers.DELETION_RETRIES, by=retries)


def _has_failed(record: SandboxDeletion) -> bool:
    """Tell whether a record's tries are used up, or its time."""
    if record.success or record.skipped or record.error is None:
        return False
    return record.retries_used >= MAX_RETRIES or record.error.startswith("Not gone")
