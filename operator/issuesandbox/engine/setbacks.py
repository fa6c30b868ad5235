"""What a failed call means for the pass that made it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from issuesandbox.domain.model import NAME_TAKEN, Plan
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import (
    Busy,
    CallError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Throttled,
)

# What to do about a refusal that does not go away by itself, or not soon.
_NEXT_STEPS = {
    "SnapshotNotUsable": "Name another one in spec.sandbox.snapshot, or add it to Daytona.",
    "TargetNotUsable": "Name a region of the organisation in spec.sandbox.target.",
    "SizeRefused": "Ask for less in spec.sandbox.resources.",
    "StartFailed": "Correct spec.sandbox, or ask Daytona why.",
    "Invalid": "Correct spec.sandbox.",
    "SecretNotFound": "Create it, or name another one in spec.sandbox.envFrom.",
    "QuotaExceeded": "It goes on by itself when there is room; free some or raise the quota.",
    "NoCapacity": "It goes on by itself when Daytona has room.",
    "OrganizationSuspended": "Settle that with Daytona; it goes on by itself.",
    "Unauthorized": "Give the operator a valid DAYTONA_API_KEY.",
}


def setback(plan: Plan, error: CallError, timings: Timings) -> Plan:
    """Return the plan to record instead of the one whose call failed."""
    if not plan.synced:
        return plan  # it was sent unseen; what it came to, the next look tells
    if isinstance(error, NotFound | Conflict):
        return _look_again(plan, error, timings)
    if isinstance(error, Busy):
        text = f"{plan.message} Daytona refuses while another change is under way."
        wait = max(timings.deletion_retry, plan.next_check or timedelta(0))
        return replace(plan, message=text, next_check=wait)
    if isinstance(error, Throttled):
        wait = timedelta(seconds=error.retry_after or 0)
        return _unsynced(plan, error.code, with_next_step(error), max(wait, timings.unknown_check))
    if isinstance(error, Denied):
        suspended = error.code == "OrganizationSuspended"
        reason = error.code if suspended else "Unauthorized"
        return _unsynced(plan, reason, with_next_step(error), timings.unknown_check)
    reason, wait = "DaytonaUnreachable", max(timings.unknown_check, plan.next_check or timedelta(0))
    if isinstance(error, Invalid):
        reason, wait = error.code, timings.refused_check
    return _unsynced(plan, reason, with_next_step(error), wait)


def _look_again(plan: Plan, error: CallError, timings: Timings) -> Plan:
    """Return the plan where the world is not what it looked like."""
    wait = max(timings.settle_check, plan.pace or timedelta(0))
    if plan.pace is None or wait < timings.absence_gap:
        return replace(plan, next_check=wait)
    # Not for a moment any more: whoever has the name is not shown.
    text = f"{_sentence(error)} Daytona shows none; if it stays so, another name is used."
    return _unsynced(plan, NAME_TAKEN, text, wait)


def _unsynced(plan: Plan, reason: str, message: str, wait: timedelta) -> Plan:
    return replace(plan, reason=reason, message=message, synced=False, ready=False, next_check=wait)


def with_next_step(error: CallError) -> str:
    """Return what went wrong and, where there is something to do about it, what."""
    return f"{_sentence(error)} {_NEXT_STEPS.get(error.code, '')}".strip()


def _sentence(error: CallError) -> str:
    text = str(error).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
