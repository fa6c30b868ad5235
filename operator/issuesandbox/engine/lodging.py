"""What the status says of sandboxes after a pass: the present one, the retired ones, the intent.

Pure. Knows nothing of conditions and of what people are told.
"""

from __future__ import annotations

from datetime import datetime

from issuesandbox.api.names import LABEL_NAME
from issuesandbox.api.status import MAX_RETIRED, Phase, Status
from issuesandbox.api.status_sandbox import Counters, Intent, IntentKind, Retired, SandboxStatus
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.deletion_record import begun, with_record
from issuesandbox.domain.model import ANNOUNCED, NAME_TAKEN, ActionKind, Plan, Want
from issuesandbox.domain.naming import attempt_of
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.states import AT_REST, Sight, is_live, sight_of, sight_of_state
from issuesandbox.domain.steps_making import UNDELETABLE
from issuesandbox.domain.usage import booked, sized
from issuesandbox.domain.wanted import Wanted, stop_reason
from issuesandbox.engine.findings import Findings
from issuesandbox.engine.reading import Reading, fingerprint

_ON_THE_WAY = AT_REST | {Sight.STARTING, Sight.RESTORING}


def with_intent(status: Status, intent: Intent) -> Status:
    """Return the status with a step announced; a create retires the sandbox before it."""
    if intent.kind is IntentKind.CREATE:
        unanswered = status.intent is not None and _may_land(status.intent)
        # Nothing is in use from here on, and people see this write.
        status = without_sandbox(status, "Replaced", intent.at)
        status = status.model_copy(update={"phase": Phase.BOOTING})
        intent = intent.model_copy(update={"repeated": intent.repeated or unanswered})
    if (intent.kind, intent.reason) == (IntentKind.DELETE, CLEANUP):
        status = with_record(booked(status, intent.at), begun(intent.sandbox_id))
    return status.model_copy(update={"intent": intent})


def without_sandbox(status: Status, reason: str, now: datetime, *, gone: bool = False) -> Status:
    """Return the status with its sandbox moved to the retired ones; its name is kept."""
    status = booked(status, now)
    sandbox = status.sandbox
    if sandbox is None or sandbox.id is None:
        return status
    retired = Retired(
        id=sandbox.id, name=sandbox.name, reason=reason, at=now, gone_at=now if gone else None
    )
    others = [each for each in status.retired if each.id != sandbox.id]
    emptied = SandboxStatus(
        name=sandbox.name,
        # Without it nobody could tell later that a key opens another organisation.
        organization_id=sandbox.organization_id,
        attempt=sandbox.attempt,
        repeated_create_at=sandbox.repeated_create_at,
    )
    return status.model_copy(
        update={"sandbox": emptied, "intent": None, "retired": _bounded([*others, retired])}
    )


def lodged(
    status: Status, reading: Reading, plan: Plan, findings: Findings, now: datetime
) -> Status:
    """Return the status with what became of the sandboxes."""
    before = status
    status = _with_create(status, reading, plan, findings, now)
    if findings.replaced:
        # The deletion freed the name, so the next create is announced with it.
        status = with_intent(status, _next_create(status, now))
    elif findings.gone:
        status = without_sandbox(status, "Gone", now, gone=True)
    elif findings.sandbox is not None:
        status = _with_sandbox(status, findings.sandbox, reading.wish, now)
    status = _with_start(status, before, reading.wish, findings, now)
    if ActionKind.CREATE in findings.done and status.sandbox is not None:
        made_from = fingerprint(reading.resource.spec.sandbox)
        sandbox = status.sandbox.model_copy(update={"spec_hash": made_from})
        status = status.model_copy(update={"sandbox": sandbox})
    recovered = ActionKind.RECOVER in findings.done
    # Once for each incident: a refusal may be of the moment, a second one is an answer.
    recovered = recovered or (findings.recovery_refused and plan.last_try)
    if recovered and status.sandbox is not None:
        sandbox = status.sandbox.model_copy(update={"recovered_at": now})
        status = status.model_copy(update={"sandbox": sandbox})
    intent = status.intent
    if plan.last_try and findings.refused and intent and intent.kind is IntentKind.DELETE:
        undeletable = intent.model_copy(update={"reason": UNDELETABLE})
        status = status.model_copy(update={"intent": undeletable})
    if findings.retired_gone is not None:
        status = _confirmed_gone(status, findings.retired_gone, now)
    if findings.duplicate is not None:
        status = _with_duplicate(status, findings.duplicate, now)
    return status


def _next_create(status: Status, now: datetime) -> Intent:
    sandbox = status.sandbox or SandboxStatus()
    attempt = (sandbox.attempt or 0) + 1
    return Intent(kind=IntentKind.CREATE, at=now, name=sandbox.name, attempt=attempt)


def _confirmed_gone(status: Status, sandbox_id: SandboxId, now: datetime) -> Status:
    retired = tuple(
        each.model_copy(update={"gone_at": now}) if each.id == sandbox_id else each
        for each in status.retired
    )
    return status.model_copy(update={"retired": retired})


def _with_duplicate(status: Status, duplicate: SandboxView, now: datetime) -> Status:
    """Return the status with another sandbox of this resource given up, if there is room."""
    if sum(each.gone_at is None for each in status.retired) >= MAX_RETIRED:
        return status
    retired = Retired(id=duplicate.id, name=duplicate.name, reason="Duplicate", at=now)
    others = [each for each in status.retired if each.id != duplicate.id]
    return status.model_copy(update={"retired": _bounded([*others, retired])})


def _may_land(intent: Intent) -> bool:
    answered = intent.reason == NAME_TAKEN and not intent.repeated
    return intent.kind is IntentKind.CREATE and not answered


def _with_create(
    status: Status, reading: Reading, plan: Plan, findings: Findings, now: datetime
) -> Status:
    """Return the status with a create that was sent on its maker's word, or was answered."""
    announced = reading.desired.memory.first_create
    if findings.granted is not None:
        status = with_intent(status, findings.granted)
    elif announced and announced.reason == ANNOUNCED and status.intent is None:
        # The word of its maker counts only while there is no status.
        status = status.model_copy(update={"intent": announced})
    if not findings.name_taken:
        return status
    create = reading.desired.memory.open_create or findings.granted
    return _with_name_taken(status, create, plan, now)


def _with_name_taken(status: Status, intent: Intent | None, plan: Plan, now: datetime) -> Status:
    """Return the status with a create answered that was sent once, or given up after long."""
    if intent is None or (intent.repeated and not plan.last_try):
        return status
    # What was sent more than once may still land: that counts from its last answer.
    taken = {"reason": NAME_TAKEN, "at": now if intent.repeated else intent.at}
    return status.model_copy(update={"intent": intent.model_copy(update=taken)})


def _with_start(
    status: Status, before: Status, wish: Wanted, findings: Findings, now: datetime
) -> Status:
    """Return the status with what became of the starts of its sandbox."""
    sandbox = status.sandbox
    if sandbox is None:
        return status
    sight, known = sight_of_state(sandbox.state), before.sandbox or SandboxStatus()
    asked_at, failed = sandbox.start_asked_at, sandbox.failed_starts or 0
    if sandbox.id != known.id or wish.want is not Want.RUNNING or sight not in _ON_THE_WAY:
        asked_at, failed = None, 0
    elif sight in AT_REST and sight_of_state(known.state) not in AT_REST and asked_at:
        asked_at, failed = None, failed + 1
    if ActionKind.START in findings.done or findings.start_put_off:
        asked_at = asked_at or now
    failed += findings.start_refused
    told = {"start_asked_at": asked_at, "failed_starts": failed or None}
    return status.model_copy(update={"sandbox": sandbox.model_copy(update=told)})


def _with_sandbox(status: Status, seen: SandboxView, wish: Wanted, now: datetime) -> Status:
    before = status.sandbox or SandboxStatus()
    same = before.id == seen.id and before.state == seen.state
    if not same:
        status = booked(status, now)
    sight = sight_of(seen)
    sandbox = before.model_copy(
        update={
            "id": seen.id,
            # Daytona renames a sandbox when it is deleted; its label keeps the name.
            "name": seen.labels.get(LABEL_NAME, seen.name),
            "organization_id": seen.organization_id or before.organization_id,
            "state": seen.state,
            "state_since": before.state_since if same and before.state_since else now,
            "attempt": attempt_of(seen.labels, before.attempt),
            "stop_reason": stop_reason(before.stop_reason, wish, sight),
            "ran_at": before.ran_at or (now if sight is Sight.RUNNING else None),
            "repeated_create_at": now if _repeated(status.intent) else before.repeated_create_at,
        }
    )
    usage = sized(
        status.usage, cpu=seen.cpu, memory=seen.memory, disk=seen.disk, gpu=seen.gpu or None
    )
    counters = status.counters or Counters()
    if sight is Sight.RUNNING and counters.failures:
        counters = counters.model_copy(update={"failures": 0})
    intent = None if _settled(status.intent, seen) else status.intent
    # What was given up as gone and is there after all is used again, so it must not be ended.
    retired = tuple(each for each in status.retired if each.id != seen.id or not is_live(seen))
    return status.model_copy(
        update={
            "sandbox": sandbox,
            "intent": intent,
            "counters": counters,
            "usage": usage,
            "retired": retired,
        }
    )


def _repeated(intent: Intent | None) -> bool:
    return intent is not None and intent.kind is IntentKind.CREATE and intent.repeated


def _settled(intent: Intent | None, seen: SandboxView) -> bool:
    if intent is None or intent.kind is IntentKind.CREATE:
        return True
    if intent.kind is IntentKind.RECOVER:
        return seen.state != "error"
    # What was to be replaced runs again; a cleanup that has begun goes on.
    return intent.reason != CLEANUP and sight_of(seen) is Sight.RUNNING


def _bounded(retired: list[Retired]) -> tuple[Retired, ...]:
    # Only ids that are confirmed gone may be forgotten.
    while len(retired) > MAX_RETIRED:
        gone = next((each for each in retired if each.gone_at is not None), None)
        if gone is None:
            break
        retired.remove(gone)
    return tuple(retired)
