"""What a pass writes down: the new status, from the old one and from what was seen and done.

Pure. A status that says the same as before is not written.
"""

from __future__ import annotations

from datetime import datetime

from issuesandbox.api.conditions import (
    Condition,
    ConditionStatus,
    ConditionType,
    Reason,
    find,
    upsert,
)
from issuesandbox.api.names import ANNOTATION_FORCE_FINALIZE
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import ErrorStatus, Phase, Status
from issuesandbox.api.status_run import RunPhase, RunStatus
from issuesandbox.api.status_sandbox import Counters
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.flags import unmet
from issuesandbox.domain.model import ActionKind, Plan
from issuesandbox.domain.states import Sight, sight_of
from issuesandbox.domain.wanted import Turn
from issuesandbox.engine.findings import Findings
from issuesandbox.engine.lodging import lodged
from issuesandbox.engine.reading import Reading, fingerprint

_COUNTED = {
    ActionKind.CREATE: "creates",
    ActionKind.ADOPT: "adoptions",
    ActionKind.START: "starts",
    ActionKind.STOP: "stops",
    ActionKind.RECOVER: "recoveries",
    ActionKind.DELETE: "deletes",
}


_ENDING = frozenset({CLEANUP, "Deleting"})
_WAY_OUT = (
    "The deletion makes no progress; when the sandbox is dealt with by hand, annotate the "
    f"resource with {ANNOTATION_FORCE_FINALIZE}=true. "
)


def next_status(
    reading: Reading, plan: Plan, findings: Findings, now: datetime, base: Status
) -> Status:
    """Return what the status should say after a pass; `base` has what the run's step changed."""
    resource = reading.resource
    status = _counted(base, findings, worn=reading.desired.memory.worn)
    status = lodged(status, reading, plan, findings, now)
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
