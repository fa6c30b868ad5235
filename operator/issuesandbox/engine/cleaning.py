"""The deletion record of a finished run's sandbox, brought up to date by a pass. Pure."""

from __future__ import annotations

from datetime import datetime

from issuesandbox.api.status import Status
from issuesandbox.domain import deletion_record as record
from issuesandbox.domain.model import ActionKind
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn
from issuesandbox.engine.findings import Findings
from issuesandbox.engine.reading import Reading


def with_deletion_record(
    status: Status, reading: Reading, findings: Findings, now: datetime, timings: Timings
) -> Status:
    """Return the status with what this pass found out about the cleanup."""
    memory, facts = reading.desired.memory, reading.facts
    began = memory.cleanup_began
    if began is None:
        return _with_skip(status, reading)
    current = status.sandbox_deletion or record.begun(memory.sandbox_id)
    if findings.gone:
        news = record.gone(current, memory.sandbox_id)
    elif findings.not_found:
        news = record.not_found(current, memory.sandbox_id)
    elif ActionKind.DELETE in findings.done or findings.failure is not None:
        news = record.tried(current, findings.failure)
    else:
        news = record.awaited(current, began, now, timings)
    if facts.deleting or news == status.sandbox_deletion:
        return status
    return record.with_record(status, news)


def _with_skip(status: Status, reading: Reading) -> Status:
    facts = reading.facts
    ended = facts.settled and facts.turn is Turn.NONE and not facts.deleting
    already = status.sandbox_deletion is not None and not status.sandbox_deletion.skipped
    if facts.finish is None or not ended or already:
        return status
    outcome = facts.finish.outcome
    skip = record.left_out(
        reading.desired.memory.sandbox_id,
        outcome,
        reading.policy.action(facts.finish.cleaned_up_as),
        keep_alive=facts.keep_alive,
    )
    if skip is None or skip == status.sandbox_deletion:
        return status
    return record.with_record(status, skip)
