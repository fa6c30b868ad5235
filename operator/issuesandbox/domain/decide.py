"""What to do next for one resource: `decide(desired, observed, now)`, pure and total.

The table in `table.py` picks the step; the modules `steps_*.py` say what each step means. A plan
holds at most one mutation at Daytona, and an intent always goes before a step that must not
be repeated blindly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from issuesandbox.api.status import MAX_RETIRED, Phase
from issuesandbox.api.status_sandbox import IntentKind
from issuesandbox.domain import steps_ending as ending
from issuesandbox.domain import steps_keeping as keeping
from issuesandbox.domain import steps_making as making
from issuesandbox.domain.model import (
    Action,
    ActionKind,
    Desired,
    Holder,
    Observed,
    Plan,
    Want,
)
from issuesandbox.domain.naming import Ownership, attempt_of
from issuesandbox.domain.sandbox import THROTTLED, Present, SandboxView, Unknown
from issuesandbox.domain.situation import Situation
from issuesandbox.domain.states import AT_REST, Sight, is_live, sight_of, sight_of_state
from issuesandbox.domain.table import REVIVALS, REVIVING, TABLE, Cell, Step
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.waiting import end_of_wait


def decide(desired: Desired, observed: Observed, now: datetime, timings: Timings) -> Plan:
    """Return what to do now for one resource."""
    sight = _sight(desired, observed, timings)
    situation = Situation(desired, observed, now, timings, sight)
    # What was asked to end goes on ending.
    if desired.paused and desired.want in (Want.RUNNING, Want.REST):
        return keeping.paused(situation)
    if desired.deleting and (desired.leave_behind or desired.forced or not desired.has_finalizer):
        return _paced(situation, _as_told(situation, ending.part(situation)))
    cell = TABLE[sight].cell(desired.want)
    step = cell.late if _overdue(situation, cell) else cell.step
    if step in REVIVING - REVIVALS[desired.revival]:
        step = Step.REST
    if step in REVIVING and desired.held_back is not None:
        return keeping.queue(situation)
    plan = _STEPS[step](situation)
    if step in REVIVING:
        plan = _within_bounds(situation, plan)
    return _paced(situation, _labelled(situation, _as_told(situation, plan)))


def _within_bounds(situation: Situation, plan: Plan) -> Plan:
    """Let no sandbox be made or replaced while too many earlier ones may still be there.

    The status has room for no more of them. A create that was announced is not sent again either.
    """
    if len(situation.desired.memory.unconfirmed) < MAX_RETIRED:
        return plan
    announces = any(each.intent and each.intent.kind is IntentKind.CREATE for each in plan.actions)
    replaces = plan.change is not None and plan.change.kind in _REPLACING
    return keeping.too_many_retired(situation) if announces or replaces else plan


def _labelled(situation: Situation, plan: Plan) -> Plan:
    """Put our labels back on where people took them off: without them nobody would reap it."""
    desired, sandbox, holder = situation.desired, situation.sandbox, situation.observed.holder
    if sandbox is None or plan.actions or holder is not Holder.OURS or not is_live(sandbox):
        return plan
    if desired.identity.ownership(sandbox.labels) is Ownership.OURS:
        return plan
    attempt = attempt_of(sandbox.labels, desired.memory.attempt)
    labels = {**sandbox.labels, **desired.identity.labels(desired.name, attempt)}
    action = Action(ActionKind.ADOPT, desired.name, sandbox.id, attempt, labels=labels)
    return replace(plan, actions=(action,), next_check=situation.timings.settle_check)


def _paced(situation: Situation, plan: Plan) -> Plan:
    """Hold back a change that was sent for the same reason and is not due again.

    Other things bring passes forward; the pace of refused calls must not depend on them.
    """
    sent, sandbox = situation.observed.paced, situation.sandbox
    if sent is None or sandbox is None or sandbox.state != sent.state:
        return plan
    if plan.change is None or (plan.row, plan.change) != (sent.plan.row, sent.plan.change):
        return plan
    told = sent.plan
    return replace(
        plan,
        actions=(),
        reason=told.reason,
        message=told.message,
        synced=told.synced,
        ready=told.ready,
        next_check=sent.left,
    )


def _as_told(situation: Situation, plan: Plan) -> Plan:
    """Return the plan with what people look for first: an end, a place in the queue, an outcome."""
    desired = situation.desired
    if desired.deleting:
        return replace(plan, stuck=_is_stuck(situation))
    if desired.held_back is not None:
        # Another run waits; meanwhile its sandbox is what the last one left.
        return keeping.queue(situation, plan)
    if desired.outcome is not None and desired.want is not Want.RUNNING:
        # People look for how the run ended; what becomes of its sandbox is told by conditions.
        return replace(plan, phase=Phase(desired.outcome.value))
    return plan


def _is_stuck(situation: Situation) -> bool:
    since = situation.desired.deleting_since
    return since is not None and situation.now - since >= situation.timings.deletion_stuck


def _sight(desired: Desired, observed: Observed, timings: Timings) -> Sight:
    seen, memory = observed.sandbox, desired.memory
    if isinstance(seen, Unknown):
        return Sight.UNASKED if seen.reason == THROTTLED else Sight.UNKNOWN
    if isinstance(seen, Present) and observed.holder is Holder.OURS:
        return _sight_of_own(desired, seen.sandbox)
    given_away = isinstance(seen, Present) and seen.sandbox.id == memory.sandbox_id
    if memory.sandbox_id is not None and not given_away:
        # Whoever holds the name by now: what becomes of the known one goes first.
        proven = observed.absent_for is not None and observed.absent_for >= timings.absence_gap
        return Sight.GONE if proven else Sight.VANISHED
    if isinstance(seen, Present):
        return _SIGHT_OF_HOLDER[observed.holder]
    return Sight.NEVER if memory.open_create is None else Sight.IN_FLIGHT


def _sight_of_own(desired: Desired, sandbox: SandboxView) -> Sight:
    sight = sight_of(sandbox)
    if sight is Sight.RUNNING and desired.broken:
        return Sight.BROKEN
    # Daytona renames what it deletes, but not always.
    keeps_name = sight is Sight.DESTROYING and sandbox.name == desired.name
    return Sight.LINGERING if keeps_name else sight


_SIGHT_OF_HOLDER = {
    Holder.FOREIGN: Sight.FOREIGN,
    Holder.LEFTOVER: Sight.LEFTOVER,
    Holder.TWIN: Sight.TWIN,
}


def _overdue(situation: Situation, cell: Cell) -> bool:
    desired, memory = situation.desired, situation.desired.memory
    if cell.step is Step.START:
        fell_back = memory.start_asked_at and sight_of_state(memory.state) not in AT_REST
        if memory.failed_starts + bool(fell_back) >= _START_TRIES:
            return True
    elif cell.step is not Step.RECOVER and not situation.is_known:
        return False
    end = end_of_wait(cell, memory, desired.start_limit, situation.timings)
    return end is not None and end <= situation.now


_REPLACING = (ActionKind.CREATE, ActionKind.DELETE)

# How often a start may be refused, or be without a lasting effect.
_START_TRIES = 2

_STEPS: dict[Step, Callable[[Situation], Plan]] = {
    Step.HOLD: keeping.hold,
    Step.CREATE: making.create,
    Step.LOOK: making.create_again,
    Step.RECHECK: keeping.recheck,
    Step.REPLACE: making.replace_broken,
    Step.RENEW: making.recreate,
    Step.SIDESTEP: making.sidestep,
    Step.ADOPT: making.adopt,
    Step.YIELD: keeping.give_way,
    Step.SUBSIDE: ending.subside,
    Step.START: making.start,
    Step.STOP: ending.stop,
    Step.STOP_UNSEEN: ending.stop_unseen,
    Step.STOP_UNTOLD: ending.stop_untold,
    Step.RECOVER: making.recover,
    Step.ARCHIVE: ending.archive,
    Step.DELETE: ending.delete,
    Step.WAIT: keeping.wait,
    Step.USE: keeping.use,
    Step.REST: keeping.rest,
    Step.RELEASE: ending.release,
    Step.OUTLAST: ending.outlast,
    Step.AWAIT_NAME: keeping.await_name,
    Step.ABANDON: making.abandon,
}
