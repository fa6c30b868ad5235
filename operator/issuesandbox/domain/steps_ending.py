"""The steps that end a sandbox or let a resource go. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from issuesandbox.api.status import Phase
from issuesandbox.api.status_sandbox import IntentKind
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.deletion_record import earliest_try
from issuesandbox.domain.model import Action, ActionKind, Holder, Plan
from issuesandbox.domain.naming import disowned
from issuesandbox.domain.situation import (
    Situation,
    growing,
    landing_left,
    new_intent,
    next_deletion,
    quiet_phase,
    state_words,
)
from issuesandbox.domain.states import AT_REST, Sight, sight_of_state
from issuesandbox.domain.steps_keeping import deleting_words, gap_left, hold, recheck, rest


def stop(situation: Situation) -> Plan:
    """Stop the sandbox."""
    sandbox = situation.sandbox
    assert sandbox is not None, "only a sandbox that was seen can be stopped"
    return Plan(
        row=situation.row,
        phase=Phase.STOPPING,
        reason="Stopping",
        message="Stopping the sandbox, as asked.",
        actions=(Action(ActionKind.STOP, sandbox_id=sandbox.id),),
        next_check=situation.timings.settle_check,
    )


def stop_unseen(situation: Situation) -> Plan:
    """Stop the sandbox by its id alone: what it needs no question for must not wait for one.

    The id is ours for ever, a stop destroys nothing, and one that comes too late is refused. What
    became of it is believed only when Daytona can be asked again.
    """
    desired, asked_for = situation.desired, situation.observed.unseen_stop_for
    memory, plan = desired.memory, hold(situation)
    may_run = sight_of_state(memory.state) not in AT_REST | {Sight.DESTROYING}
    # After a run its sandbox is idle: its cleanup has the time to look first.
    in_vain = memory.sandbox_id is None or memory.cleanup_began is not None or not may_run
    if in_vain or (asked_for is not None and asked_for < situation.timings.unknown_check):
        return plan
    return replace(plan, actions=(Action(ActionKind.STOP, sandbox_id=memory.sandbox_id),))


def stop_untold(situation: Situation) -> Plan:
    """Stop a sandbox that does not tell how it is, at first as often as one that is not seen.

    Nothing is believed of what came of it: it counts as stopped when it is seen to rest.
    """
    observed, timings, words = situation.observed, situation.timings, state_words(situation)
    sandbox, asked_for = situation.sandbox, observed.unseen_stop_for
    assert sandbox is not None, "only a sandbox that was seen tells nothing"
    plan = replace(
        hold(situation),
        message=f"Stopping the sandbox, as asked, though it is {words}: nobody sees what it does.",
        synced=False,
    )
    pause = growing(observed.unseen_stops_took, timings.unknown_check, timings.deletion_pause)
    if asked_for is not None and asked_for < pause:
        return plan
    return replace(plan, actions=(Action(ActionKind.STOP, sandbox_id=sandbox.id),))


def archive(situation: Situation) -> Plan:
    """Archive a stopped sandbox where that is asked for."""
    sandbox = situation.sandbox
    assert sandbox is not None, "only a sandbox that was seen can be archived"
    # Daytona archives what is stopped, never what is paused.
    if not situation.desired.archive or sandbox.state != "stopped":
        return rest(situation)
    return Plan(
        row=situation.row,
        phase=Phase.STOPPED,
        reason="Archiving",
        message="Archiving the sandbox, as its cleanup policy says.",
        actions=(Action(ActionKind.ARCHIVE, sandbox_id=sandbox.id),),
        next_check=situation.timings.settle_check,
    )


def delete(situation: Situation) -> Plan:
    """Delete the sandbox; after a run the deletion is announced, and paced by its record."""
    sandbox, desired = situation.sandbox, situation.desired
    assert sandbox is not None, "only a sandbox that was seen can be deleted"
    plan = Plan(
        row=situation.row,
        phase=Phase.DELETING,
        reason="Deleting",
        message=deleting_words(sandbox.id),
        actions=(Action(ActionKind.DELETE, sandbox_id=sandbox.id),),
        next_check=next_deletion(situation),
    )
    if desired.deleting:
        return plan
    began = desired.memory.cleanup_began
    if began is None:
        memory, kind = desired.memory, IntentKind.DELETE
        intent = new_intent(situation, kind, desired.name, memory.attempt, CLEANUP)
        announced = (Action(ActionKind.WRITE_INTENT, intent=intent), *plan.actions)
        return replace(plan, reason=CLEANUP, actions=announced)
    wait = earliest_try(desired.memory.deletion, began, situation.timings) - situation.now
    if wait > timedelta(0):
        return replace(plan, reason=CLEANUP, actions=(), next_check=wait)
    return replace(plan, reason=CLEANUP)


def release(situation: Situation) -> Plan:
    """Let the resource go unless a retired sandbox may still exist or a create may land."""
    if not situation.desired.deleting:
        return rest(situation)
    timings, left = situation.timings, landing_left(situation)
    if situation.desired.memory.unconfirmed or not situation.observed.fleet_is_clear:
        return _await_absence(situation, timings.unknown_check)
    if left > timedelta(0):
        return _await_absence(situation, max(left, timings.settle_check))
    return let_go(situation)


def part(situation: Situation) -> Plan:
    """Give the sandbox up without touching it: our label goes, then the resource."""
    sandbox, desired = situation.sandbox, situation.desired
    if desired.forced or not desired.has_finalizer:
        return let_go(situation)
    if situation.sight in (Sight.UNKNOWN, Sight.UNASKED):
        return hold(situation)
    if situation.sight is Sight.VANISHED:
        # If it is there after all, it would be reaped once its resource is gone.
        return recheck(situation)
    if sandbox is None or situation.observed.holder is not Holder.OURS:
        return outlast(situation) if situation.sight is Sight.IN_FLIGHT else let_go(situation)
    return Plan(
        row=situation.row,
        phase=Phase.DELETING,
        reason="Orphaning",
        message=f"Leaving sandbox {sandbox.id} behind, as deletionPolicy says.",
        actions=(
            Action(ActionKind.DISOWN, sandbox_id=sandbox.id, labels=disowned(sandbox.labels)),
        ),
        next_check=situation.timings.settle_check,
    )


def let_go(situation: Situation) -> Plan:
    """Take the finalizer off."""
    return Plan(
        row=situation.row,
        phase=Phase.DELETING,
        reason="Released",
        message="Nothing is left to wait for; letting the resource go.",
        actions=(Action(ActionKind.RELEASE),) if situation.desired.has_finalizer else (),
    )


def outlast(situation: Situation) -> Plan:
    """Let the resource go once nothing can exist or land any more."""
    if not situation.desired.deleting:
        return rest(situation) if situation.sight is Sight.GONE else subside(situation)
    absent_for = situation.observed.absent_for or timedelta(0)
    if absent_for >= situation.timings.absence_gap:
        return release(situation)
    return _await_absence(situation, max(gap_left(situation), landing_left(situation)))


def _await_absence(situation: Situation, wait: timedelta) -> Plan:
    return Plan(
        row=situation.row,
        phase=Phase.DELETING,
        reason="WaitingForAbsence",
        message="Waiting until Daytona confirms that nothing is left and nothing can still land.",
        next_check=wait,
    )


def subside(situation: Situation) -> Plan:
    """Wait until a create that was sent can no longer land."""
    if landing_left(situation) <= timedelta(0):
        return replace(rest(situation), phase=Phase.STOPPED)
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason="Waiting",
        message="A create that was sent may still take effect.",
        next_check=situation.timings.unknown_check,
    )
