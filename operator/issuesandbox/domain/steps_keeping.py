"""The steps that change nothing, or only keep alive what is there. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from issuesandbox.api.conditions import Reason
from issuesandbox.api.status import Phase
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.model import NAME_TAKEN, Action, ActionKind, Plan, Revival, Want
from issuesandbox.domain.sandbox import SandboxView, Unknown
from issuesandbox.domain.situation import (
    Situation,
    growing,
    next_look,
    quiet_phase,
    state_words,
)


def paused(situation: Situation) -> Plan:
    """Change nothing because somebody asked for that."""
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason="ReconcilePaused",
        message="Paused or frozen; nothing is changed until that is lifted.",
        synced=False,
    )


def hold(situation: Situation) -> Plan:
    """Change nothing because nothing is proven."""
    seen = situation.observed.sandbox
    if isinstance(seen, Unknown):
        reason, message = seen.reason, seen.message
    else:
        reason, message = "Stuck", f"The sandbox stays {state_words(situation)}; it is left alone."
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason=reason,
        message=message,
        synced=not isinstance(seen, Unknown),
        next_check=situation.timings.unknown_check,
    )


def wait(situation: Situation) -> Plan:
    """Let a transition take its time."""
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason="Waiting",
        message=f"The sandbox is {state_words(situation)}.",
        next_check=next_look(situation),
    )


def await_name(situation: Situation) -> Plan:
    """Let a sandbox end that keeps the name of the one that is wanted."""
    since = situation.desired.memory.state_since or situation.now
    name, timings = situation.desired.name, situation.timings
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason=NAME_TAKEN,
        message=f"{name} is being destroyed and keeps its name; if it stays, another one is taken.",
        synced=False,
        next_check=growing(situation.now - since, timings.settle_check, timings.unknown_check),
    )


def recheck(situation: Situation) -> Plan:
    """Look a second time before an absence is believed."""
    desired = situation.desired
    reason = "Vanished"
    message = "Daytona does not show the sandbox; looking again before believing it."
    if desired.memory.cleanup_began is not None and not desired.deleting:
        # That is what we asked for, and it is not over before it is believed.
        reason, message = CLEANUP, deleting_words(desired.memory.sandbox_id)
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason=reason,
        message=message,
        next_check=gap_left(situation),
    )


def gap_left(situation: Situation) -> timedelta:
    """Return how long to wait until a second look proves an absence."""
    timings, absent_for = situation.timings, situation.observed.absent_for or timedelta(0)
    return max(timings.absence_gap - absent_for, timings.settle_check)


def deleting_words(sandbox_id: str | None) -> str:
    """Return what people are told while a sandbox is being deleted."""
    return f"Deleting sandbox {sandbox_id}."


def use(situation: Situation) -> Plan:
    """Use the sandbox, and keep Daytona from stopping it."""
    sandbox, now = situation.sandbox, situation.now
    assert sandbox is not None, "only a sandbox that was seen can be used"
    # A renewal counts as use: it must not keep alive what only use keeps alive.
    due = _renewal_due(sandbox) if situation.desired.revival is not Revival.NONE else None
    renew = (Action(ActionKind.RENEW, sandbox_id=sandbox.id),) if due and due <= now else ()
    return Plan(
        row=situation.row,
        phase=Phase.IDLE,
        reason="Running",
        message="The sandbox is running.",
        actions=renew,
        ready=True,
        renew_at=due,
    )


def _renewal_due(sandbox: SandboxView) -> datetime | None:
    """Return when half of Daytona's auto-stop interval has passed without traffic."""
    if not sandbox.auto_stop_interval or sandbox.last_activity_at is None:
        return None
    return sandbox.last_activity_at + timedelta(minutes=sandbox.auto_stop_interval) / 2


def rest(situation: Situation) -> Plan:
    """Leave things as they are."""
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason="AtRest",
        message="Nothing is wanted running.",
    )


def queue(situation: Situation, plan: Plan | None = None) -> Plan:
    """Wait for admission: nothing is made or brought back; `plan` is for what there is."""
    held_back = situation.desired.held_back
    assert held_back is not None, "only a resource that is held back waits for admission"
    plan = plan or rest(situation)
    if not plan.actions and not plan.ready and plan.synced:
        plan = replace(plan, reason=held_back.reason, message=held_back.message)
    # The desk wakes whoever's turn has come; this is for a wake that was missed.
    wait = held_back.retry or situation.timings.refused_check
    waiting = held_back.reason in (Reason.QUEUED, Reason.RATE_LIMITED)
    return replace(
        plan,
        phase=Phase.QUEUED if waiting else Phase.PENDING,
        admitted=False,
        next_check=min(wait, plan.next_check or wait),
    )


def give_way(situation: Situation) -> Plan:
    """Leave the issue to the resource that owns it."""
    waits = situation.desired.want is Want.RUNNING
    return Plan(
        row=situation.row,
        phase=Phase.PENDING if waits else quiet_phase(situation),
        reason="DuplicateIssue",
        message="Another resource owns this issue and its sandbox; delete one of the two.",
        admitted=False,
        next_check=situation.timings.refused_check,
    )


def too_many_retired(situation: Situation) -> Plan:
    """Make no other sandbox while too many earlier ones may still be there."""
    count = len(situation.desired.memory.unconfirmed)
    held = "earlier sandboxes are not confirmed gone, or hold every name there is"
    return Plan(
        row=situation.row,
        phase=Phase.FAILED,
        reason="RetiredNotGone",
        message=f"{count} {held}; no other is made until then.",
        next_check=situation.timings.unknown_check,
    )
