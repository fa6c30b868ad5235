"""What a pass writes down: the new status, from the old one and from what was seen and done.

Pure. A status that says the same as before is not written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from issuesandbox.api.conditions import (
    Condition,
    ConditionStatus,
    ConditionType,
    Reason,
    find,
    upsert,
)
from issuesandbox.api.names import ANNOTATION_FORCE_FINALIZE, LABEL_NAME
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import MAX_RETIRED, ErrorStatus, Phase, Status
from issuesandbox.api.status_run import RunPhase, RunStatus
from issuesandbox.api.status_sandbox import Counters, Intent, IntentKind, Retired, SandboxStatus
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.deletion_record import begun, with_record
from issuesandbox.domain.flags import unmet
from issuesandbox.domain.model import NAME_TAKEN, ActionKind, Plan, Want
from issuesandbox.domain.naming import attempt_of
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.states import AT_REST, Sight, is_live, sight_of, sight_of_state
from issuesandbox.domain.steps_making import UNDELETABLE
from issuesandbox.domain.usage import booked, sized
from issuesandbox.domain.wanted import Turn, Wanted, stop_reason
from issuesandbox.engine.reading import Reading, fingerprint

_COUNTED = {
    ActionKind.CREATE: "creates",
    ActionKind.ADOPT: "adoptions",
    ActionKind.START: "starts",
    ActionKind.STOP: "stops",
    ActionKind.RECOVER: "recoveries",
    ActionKind.DELETE: "deletes",
}


_ON_THE_WAY = AT_REST | {Sight.STARTING, Sight.RESTORING}
_ENDING = frozenset({CLEANUP, "Deleting"})
_WAY_OUT = (
    "The deletion makes no progress; when the sandbox is dealt with by hand, annotate the "
    f"resource with {ANNOTATION_FORCE_FINALIZE}=true. "
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pass saw and did, as far as the status cares."""

    sandbox: SandboxView | None = None
    gone: bool = False
    done: tuple[ActionKind, ...] = ()
    failure: str | None = None
    """Why a call of this pass failed."""
    refused: bool = False
    """Whether it failed though Daytona could be asked about the sandbox."""
    not_found: bool = False
    """Whether it failed because Daytona did not know the sandbox."""
    name_taken: bool = False
    """Whether a create was answered: there is a sandbox of that name."""
    start_refused: bool = False
    replaced: bool = False
    retired_gone: SandboxId | None = None
    duplicate: SandboxView | None = None
    """Another live sandbox of this resource, beside the one that it has."""
    announced: bool = False
    """A deletion was announced in this very pass, and counted with that."""


def with_intent(status: Status, intent: Intent) -> Status:
    """Return the status with a step announced; a create retires the sandbox before it."""
    if intent.kind is IntentKind.CREATE:
        unanswered = status.intent is not None and _may_land(status.intent)
        status = without_sandbox(status, "Replaced", intent.at)
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


def next_status(
    reading: Reading, plan: Plan, findings: Findings, now: datetime, base: Status
) -> Status:
    """Return what the status should say after a pass; `base` has what the run's step changed."""
    resource = reading.resource
    status = _counted(base, findings, worn=reading.desired.memory.worn)
    if findings.name_taken:
        status = _with_name_taken(status, reading, plan, now)
    if findings.replaced:
        # The deletion freed the name, so the next create is announced with it.
        status = with_intent(status, _next_create(status, now))
    elif findings.gone:
        status = without_sandbox(status, "Gone", now, gone=True)
    elif findings.sandbox is not None:
        status = _with_sandbox(status, findings.sandbox, reading.wish, now)
    status = _with_start(status, base, reading.wish, findings, now)
    if ActionKind.CREATE in findings.done and status.sandbox is not None:
        made_from = fingerprint(resource.spec.sandbox)
        sandbox = status.sandbox.model_copy(update={"spec_hash": made_from})
        status = status.model_copy(update={"sandbox": sandbox})
    if ActionKind.RECOVER in findings.done and status.sandbox is not None:
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
    status = _used_up(status, resource.status.run)
    issue = resource.spec.issue
    generation = resource.metadata.generation
    return status.model_copy(
        update={
            "observed_generation": generation,
            "issue": f"{issue.repository}#{issue.number}",
            "phase": _phase(plan, resource, status.run),
            "error": None if plan.synced else ErrorStatus(message=plan.message, code=plan.reason),
            "conditions": _conditions(reading, status, plan, findings, now),
        }
    )


def _phase(plan: Plan, resource: IssueSandbox, run: RunStatus | None) -> Phase:
    """Return the word for people: while the sandbox just runs, the run says how far it is."""
    if run is None or plan.phase is not Phase.IDLE:
        return plan.phase
    if run.phase is not RunPhase.FINISHED:
        return Phase(run.phase.value)
    asked = resource.spec.run
    another = asked is not None and asked.trigger != run.trigger
    return plan.phase if another or run.outcome is None else Phase(run.outcome.value)


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
    return status.model_copy(update={"retired": _bounded([*status.retired, retired])})


def _may_land(intent: Intent) -> bool:
    answered = intent.reason == NAME_TAKEN and not intent.repeated
    return intent.kind is IntentKind.CREATE and not answered


def _with_name_taken(status: Status, reading: Reading, plan: Plan, now: datetime) -> Status:
    """Return the status with a create answered that was sent once, or given up after long."""
    intent = reading.desired.memory.open_create
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
    if ActionKind.START in findings.done:
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


def _counted(status: Status, findings: Findings, *, worn: bool) -> Status:
    counters = status.counters or Counters()
    changes = {
        name: getattr(counters, name) + findings.done.count(kind)
        for kind, name in _COUNTED.items()
        if kind in findings.done and not (findings.announced and kind is ActionKind.DELETE)
    }
    if findings.replaced:
        changes["failures"] = 0 if worn else counters.failures + 1
    return status.model_copy(update={"counters": counters.model_copy(update=changes)})


def _used_up(status: Status, before: RunStatus | None) -> Status:
    """Book the present sandbox on the run that ended in this pass, also if it never began in it."""
    run, sandbox = status.run, status.sandbox
    if run is None or run.outcome is None or sandbox is None:
        return status
    if before is not None and before.id == run.id and before.outcome is not None:
        return status
    return status.model_copy(update={"run": run.model_copy(update={"attempt": sandbox.attempt})})


def _conditions(
    reading: Reading, status: Status, plan: Plan, findings: Findings, now: datetime
) -> tuple[Condition, ...]:
    resource = reading.resource
    running = findings.sandbox is not None and sight_of(findings.sandbox) is Sight.RUNNING
    # What is being deleted serves nobody, also while Daytona still shows it as it was.
    running = running and plan.reason not in _ENDING
    wanted = {
        ConditionType.READY: (plan.ready, plan.reason, plan.message),
        ConditionType.SYNCED: _synced(reading, status, plan),
        ConditionType.SANDBOX_READY: (running, plan.reason, plan.message),
    }
    known = {each.type for each in status.conditions}
    if not plan.admitted or ConditionType.ADMITTED in known:
        wanted[ConditionType.ADMITTED] = _admitted(reading, plan)
    if plan.stuck:
        wanted[ConditionType.DELETION_STUCK] = (True, plan.reason, _WAY_OUT + plan.message)
    conditions = status.conditions
    for kind, (holds, why, text) in wanted.items():
        stands = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
        generation, before = resource.metadata.generation, find(conditions, kind)
        if before is not None and _says(before) == (stands, why, text, generation):
            continue
        draft = Condition(
            type=kind,
            status=stands,
            reason=why,
            message=text,
            last_transition_time=now,
            observed_generation=generation,
        )
        conditions = upsert(conditions, draft)
    if reading.facts.turn is not Turn.NONE:
        return conditions
    # No run is asked for but the one they tell of: they answer this edit too. `kubectl wait`
    # would wait for ever for a condition that was seen for an older one.
    seen = {"observed_generation": resource.metadata.generation}
    return tuple(each.model_copy(update=seen) for each in conditions)


def _admitted(reading: Reading, plan: Plan) -> tuple[bool, str, str]:
    if plan.admitted:
        return True, "Admitted", "The resource may have a sandbox."
    held_back = reading.desired.held_back
    if held_back is not None:
        return False, held_back.reason, held_back.message
    return False, plan.reason, plan.message


def _says(condition: Condition) -> tuple[str, str, str, int | None]:
    return condition.status, condition.reason, condition.message, condition.observed_generation


def _synced(reading: Reading, status: Status, plan: Plan) -> tuple[bool, str, str]:
    resource = reading.resource
    if not plan.synced:
        return False, plan.reason, plan.message
    if resource.spec.flags is not None and (gaps := unmet(reading.flags)):
        return True, Reason.FLAG_WITHOUT_ITS_BASE, f"{'; '.join(gaps)}."
    made_from = status.sandbox.spec_hash if status.sandbox else None
    if made_from is not None and made_from != fingerprint(resource.spec.sandbox):
        text = "spec.sandbox was edited; the next sandbox is made from it."
        return True, Reason.SANDBOX_OUTDATED, text
    return True, "Synced", "The last pass could see and do all it needed."


def _bounded(retired: list[Retired]) -> tuple[Retired, ...]:
    # Only ids that are confirmed gone may be forgotten.
    while len(retired) > MAX_RETIRED:
        gone = next((each for each in retired if each.gone_at is not None), None)
        if gone is None:
            break
        retired.remove(gone)
    return tuple(retired)
