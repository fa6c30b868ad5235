"""Which Events a pass posts: one for each transition, by what the status said before and says now.

Pure. A pass that finds everything as it was posts none.
"""

from __future__ import annotations

from collections.abc import Iterator

from issuesandbox.api.conditions import ConditionStatus, ConditionType, Reason, find
from issuesandbox.api.status import Status
from issuesandbox.api.status_sandbox import IntentKind
from issuesandbox.domain.model import Plan
from issuesandbox.ports.resources import EventNote

_QUIET = frozenset({"Waiting", "AtRest", "WaitingForAbsence"})
_REMARKS = frozenset({Reason.FLAG_WITHOUT_ITS_BASE, Reason.SANDBOX_OUTDATED})
# What is told while a sandbox cannot be looked at.
_UNSEEN = frozenset(
    {
        "DaytonaUnreachable",
        "HolderUnknown",
        "OrganizationSuspended",
        "Throttled",
        "Unauthorized",
        "WrongOrganization",
    }
)
_TROUBLE = frozenset(
    {
        "Abandoned",
        "AttemptsExhausted",
        "BreakerOpen",
        "DuplicateIssue",
        "NameCollision",
        "NameTaken",
        "Replacing",
        "RepositoryNotAllowed",
        "RetiredNotGone",
        "Stuck",
        "Vanished",
    }
)


def notes(before: Status, after: Status, *plans: Plan) -> Iterator[EventNote]:
    """Yield what is to be told of a pass; `plans` is what it did and what it came to."""
    yield from _cleared(before, after)
    ready = find(before.conditions, ConditionType.READY)
    known = _QUIET if ready is None else _QUIET | {ready.reason}
    news = [plan for plan in plans if plan.reason not in known]
    if news:
        # A sandbox that runs as soon as it is created is one transition, and one Event.
        warning = any(not plan.synced or plan.reason in _TROUBLE for plan in news)
        message = " ".join(plan.message for plan in news)
        yield EventNote(news[-1].reason, message, warning=warning)
    elif _is_out_of_trouble(before, after):
        # Only who was told of the trouble: after an outage that is not everybody.
        yield EventNote("Synced", f"Seen again, and all is well: {plans[-1].message}")
    if _stop_reason(after) is not None and _stop_reason(before) is None:
        yield EventNote("Stopped", "The sandbox is stopped, as wanted.")
    yield from _cleaned_up(before, after)
    yield from _remarks(before, after)
    stuck = find(after.conditions, ConditionType.DELETION_STUCK)
    if stuck is not None and find(before.conditions, ConditionType.DELETION_STUCK) is None:
        yield EventNote("DeletionStuck", stuck.message, warning=True)


def deleting_retired(sandbox_id: str) -> EventNote:
    """Return what is told when a sandbox that was given up lives, and is deleted again."""
    return EventNote(
        "DeletingRetired", f"Sandbox {sandbox_id} was given up but lives; deleting it."
    )


def _cleared(before: Status, after: Status) -> Iterator[EventNote]:
    """Yield that a sandbox is not referred to any more because it was found to be gone."""
    if before.intent is not None and before.intent.kind is IntentKind.DELETE:
        return  # asked for
    known = {each.id for each in before.retired}
    sandbox = before.sandbox
    for each in after.retired:
        if each.id not in known and sandbox is not None and sandbox.id == each.id:
            text = f"Sandbox {each.id} is gone and not referred to any more."
            yield EventNote("StaleReferenceCleared", text, warning=True)


def _is_out_of_trouble(before: Status, after: Status) -> bool:
    then, now = (find(each.conditions, ConditionType.SYNCED) for each in (before, after))
    if then is None or now is None or then.reason not in _UNSEEN:
        return False
    return then.status == ConditionStatus.FALSE and now.status == ConditionStatus.TRUE


def _remarks(before: Status, after: Status) -> Iterator[EventNote]:
    """Yield what is to be known of an edit, though nothing keeps it from being carried out."""
    now, then = (find(each.conditions, ConditionType.SYNCED) for each in (after, before))
    if now is None or now.reason not in _REMARKS:
        return
    if then is None or (then.reason, then.message) != (now.reason, now.message):
        warning = now.reason == Reason.FLAG_WITHOUT_ITS_BASE
        yield EventNote(now.reason, now.message, warning=warning)


def _cleaned_up(before: Status, after: Status) -> Iterator[EventNote]:
    note, known = _of_deletion(after), _of_deletion(before)
    if note is not None and (known is None or known.reason != note.reason):
        yield note


def _of_deletion(status: Status) -> EventNote | None:
    record = status.sandbox_deletion
    if record is None or not (record.success or record.skipped or record.error):
        return None
    if record.success:
        return EventNote("SandboxDeleted", record.message)
    if record.skipped:
        return EventNote("SandboxKept", record.message)
    text = f"{record.message} {record.error}"
    return EventNote("SandboxDeletionFailed", text, warning=True)


def _stop_reason(status: Status) -> str | None:
    return status.sandbox.stop_reason if status.sandbox is not None else None
