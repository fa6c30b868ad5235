"""The record of how the sandbox of a finished run was cleaned up: decided, tried and found.

It only reports. No outcome rests on it, and passes go on deleting until the sandbox is gone,
whatever it says. A deletion began when its intent was written. Pure; knows no Daytona.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol

from issuesandbox.api.spec_cleanup import CleanupAction
from issuesandbox.api.status import MAX_HISTORY, SandboxCleanup, Status, Summary
from issuesandbox.api.status_run import Outcome, PastRun
from issuesandbox.api.status_sandbox import SandboxDeletion
from issuesandbox.domain.cleanup import later

NO_ID: Final = "No sandbox ID provided"
MAX_RETRIES: Final = 2


class DeletionTimings(Protocol):
    """The durations that the record needs."""

    @property
    def deletion_retry(self) -> timedelta:
        """How soon a refused deletion is tried again; doubled for the next time."""

    @property
    def deletion_limit(self) -> timedelta:
        """How long a deletion may take in all before it is recorded as failed."""


def left_out(
    sandbox_id: str | None, outcome: Outcome, action: CleanupAction, *, keep_alive: bool
) -> SandboxDeletion | None:
    """Return the record of a deletion that is skipped; None: the sandbox is to be deleted."""
    known = _clean(sandbox_id)
    if known is None:
        return _skipped(None, NO_ID)
    if outcome is not Outcome.SUCCEEDED:
        kept = action is not CleanupAction.DELETE
        why = f"Sandbox preserved for debugging (status: {outcome})"
        return _skipped(known, why) if kept else None
    if keep_alive:
        return _skipped(known, f"Sandbox kept alive for follow-ups (status: {outcome})")
    if action is CleanupAction.DELETE:
        return None
    return _skipped(known, f"Sandbox kept by cleanup policy {action} (status: {outcome})")


def begun(sandbox_id: str | None) -> SandboxDeletion:
    """Return the record of a deletion whose intent was just written."""
    known = _clean(sandbox_id)
    return _deleting(known) if known is not None else _skipped(None, NO_ID)


def tried(record: SandboxDeletion, error: str | None) -> SandboxDeletion:
    """Return the record after one more call: accepted, or why not."""
    again = record.error is not None and record.retries_used < MAX_RETRIES
    retries = record.retries_used + again
    if error is None:
        return _deleting(record.sandbox_id, retries)
    return _failed(record.sandbox_id, error, retries)


def awaited(
    record: SandboxDeletion, began: datetime, now: datetime, timings: DeletionTimings
) -> SandboxDeletion:
    """Return the record while the sandbox is still there: at the limit that is an error."""
    if record.success or record.skipped or record.error is not None:
        return record
    if now < later(began, timings.deletion_limit):
        return record
    error = f"Not gone within {timings.deletion_limit.total_seconds():g} s"
    return _failed(record.sandbox_id, error, record.retries_used)


def not_found(record: SandboxDeletion | None, sandbox_id: str | None) -> SandboxDeletion:
    """Return the record when Daytona did not know the sandbox it was asked to delete."""
    return SandboxDeletion(
        sandbox_id=_clean(sandbox_id),
        success=True,
        message="Sandbox not found; it was already gone.",
        retries_used=record.retries_used if record is not None else 0,
    )


def gone(record: SandboxDeletion | None, sandbox_id: str | None) -> SandboxDeletion:
    """Return the record when the sandbox is confirmed gone."""
    if record is None or record.skipped:
        return not_found(None, sandbox_id)
    if record.success:
        return record
    return SandboxDeletion(
        sandbox_id=record.sandbox_id,
        success=True,
        message="Sandbox deleted.",
        retries_used=record.retries_used,
    )


def earliest_try(
    record: SandboxDeletion | None, began: datetime, timings: DeletionTimings
) -> datetime:
    """Return before when the next call must not be sent, whatever brings a pass forward."""
    if record is None or record.error is None or record.retries_used >= MAX_RETRIES:
        return began
    return later(began, timings.deletion_retry * (2 ** (record.retries_used + 1) - 1))


def with_record(status: Status, record: SandboxDeletion) -> Status:
    """Return the status with the record and its summary; a skip it replaces goes to history."""
    before = status.sandbox_deletion
    replaced = before is not None and before.skipped and not record.skipped
    in_short = SandboxCleanup(
        attempted=not record.skipped,
        success=record.success,
        skipped=record.skipped,
        skip_reason=record.skip_reason,
        error=record.error,
    )
    summary = status.summary or Summary()
    return status.model_copy(
        update={
            "sandbox_deletion": record,
            "summary": summary.model_copy(update={"sandbox_cleanup": in_short}),
            "history": remembered(status) if replaced else status.history,
        }
    )


def remembered(status: Status) -> tuple[PastRun, ...]:
    """Return the history with the finished run in it, once, and how its deletion was skipped."""
    run = status.run
    if run is None or run.outcome is None:
        return status.history
    known = next((each for each in status.history if each.id == run.id), None)
    record = status.sandbox_deletion
    skipped = record if record is not None and record.skipped else None
    sandbox_id = record.sandbox_id if record is not None else None
    past = PastRun(
        id=run.id,
        trigger=run.trigger,
        outcome=run.outcome,
        reason=run.reason,
        started_at=run.started_at,
        finished_at=run.finished_at,
        sandbox_id=sandbox_id or (status.sandbox.id if status.sandbox else None),
        session_id=run.session_id,
        commit=run.commit,
        pull_request_number=run.pull_request.number if run.pull_request else None,
        cost_usd=run.usage.cost_usd if run.usage else None,
        sandbox_deletion=skipped or (known.sandbox_deletion if known else None),
    )
    others = (each for each in status.history if each.id != run.id)
    return (past, *others)[:MAX_HISTORY]


def _clean(sandbox_id: str | None) -> str | None:
    return (sandbox_id or "").strip() or None


def _skipped(sandbox_id: str | None, why: str) -> SandboxDeletion:
    return SandboxDeletion(
        sandbox_id=sandbox_id,
        success=False,
        message=f"Deletion skipped: {why}.",
        skipped=True,
        skip_reason=why,
    )


def _deleting(sandbox_id: str | None, retries: int = 0) -> SandboxDeletion:
    return SandboxDeletion(
        sandbox_id=sandbox_id, success=False, message="Deleting the sandbox.", retries_used=retries
    )


def _failed(sandbox_id: str | None, error: str, retries: int) -> SandboxDeletion:
    return SandboxDeletion(
        sandbox_id=sandbox_id,
        success=False,
        message="The deletion failed; it is tried again until the sandbox is gone.",
        retries_used=retries,
        error=error,
    )
