"""The steps that lead to a running sandbox. Pure; which step is due, the table says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from issuesandbox.api.status import Phase
from issuesandbox.api.status_sandbox import Intent, IntentKind
from issuesandbox.domain.model import NAME_TAKEN, Action, ActionKind, Plan
from issuesandbox.domain.naming import generation, generation_name, suffixed_name
from issuesandbox.domain.situation import (
    Situation,
    booting,
    growing,
    landing_left,
    new_intent,
    next_deletion,
    quiet_phase,
    state_words,
)
from issuesandbox.domain.states import Sight
from issuesandbox.domain.steps_keeping import too_many_retired, wait
from issuesandbox.domain.timings import Timings

_LAST_GENERATION = 3
# The reason that stands at a resource whose sandbox stays as it is until somebody asks anew.
EXHAUSTED = "AttemptsExhausted"
# The reason of a plan that deletes a sandbox so that another can take its place.
REPLACING = "Replacing"
# The reason in the intent of a deletion that was tried for too long and refused again.
UNDELETABLE = "Undeletable"


def create(situation: Situation) -> Plan:
    """Announce the very first sandbox, then create it; a later one is a recreation."""
    desired = situation.desired
    attempt = desired.memory.attempt + 1
    intent = new_intent(situation, IntentKind.CREATE, desired.name, attempt)
    send = Action(ActionKind.CREATE, name=desired.name, attempt=attempt)
    message = f"Creating sandbox {desired.name}."
    if desired.announced:
        # By whoever made the resource; the intent is written down with the result.
        return booting(situation, "Creating", message, (replace(send, intent=intent),))
    if desired.has_finalizer:
        return recreate(situation)
    announce = Action(ActionKind.ANNOUNCE_FIRST_CREATE, intent=intent)
    return booting(situation, "Creating", message, (announce, send))


def create_again(situation: Situation) -> Plan:
    """Send an announced create again: nothing of it was found.

    The name lets only one of the two work while its sandbox lives. That there were two is
    written down, since the other one may land when that sandbox is deleted.
    """
    intent = situation.desired.memory.open_create
    if intent is None:
        return create(situation)
    name, attempt = intent.name or situation.desired.name, intent.attempt or 1
    if intent.repeated and intent.reason == NAME_TAKEN and _has_next_generation(name):
        return _leave_name(situation, name)
    pause = _pause_left(situation, intent)
    if pause > timedelta(0):
        message = f"{situation.desired.memory.failures} sandboxes in a row broke; pausing."
        return replace(booting(situation, "Creating", message, ()), next_check=pause)
    actions = [Action(ActionKind.CREATE, name=name, attempt=attempt)]
    if not intent.repeated:
        repeated = new_intent(situation, IntentKind.CREATE, name, attempt)
        repeated = repeated.model_copy(update={"repeated": True})
        actions.insert(0, Action(ActionKind.WRITE_INTENT, intent=repeated))
    timings, tried_for = situation.timings, situation.now - intent.at
    return replace(
        booting(situation, "Creating", f"Creating sandbox {name}.", tuple(actions)),
        last_try=intent.repeated and tried_for >= timings.deletion_stuck,
        pace=_pace(tried_for, timings),
    )


def _pace(tried_for: timedelta, timings: Timings) -> timedelta:
    """Return when a create whose name is taken is sent again, and when its name is given up."""
    left = timings.deletion_stuck - tried_for
    if left <= timedelta(0):
        return timings.landing_horizon
    return min(growing(tried_for, timings.settle_check, timings.deletion_pause), left)


def _pause_left(situation: Situation, announced: Intent) -> timedelta:
    """Return how long the next sandbox waits after others that broke, each time longer."""
    # The first that breaks may have run for long: only what breaks after it makes a row.
    in_a_row = situation.desired.memory.failures - 1
    if announced.repeated or in_a_row < 1:
        return timedelta(0)
    return announced.at + situation.timings.create_retry * in_a_row - situation.now


def _leave_name(situation: Situation, name: str) -> Plan:
    """Take another name once none of the creates can land that asked for this one."""
    left = landing_left(situation)
    if left <= timedelta(0):
        return abandon(situation)
    message = f"{name} is taken by what cannot be deleted; another one is used soon."
    plan = booting(situation, NAME_TAKEN, message, ())
    return replace(plan, synced=False, next_check=max(left, situation.timings.settle_check))


def recreate(situation: Situation) -> Plan:
    """Retire the sandbox that is gone, if there was one, and create the next attempt."""
    desired = situation.desired
    message = f"There is no sandbox any more; creating attempt {desired.memory.attempt + 1}."
    return _create_next(situation, desired.name, "Recreating", message)


def _create_next(situation: Situation, name: str, reason: str, message: str) -> Plan:
    attempt = situation.desired.memory.attempt + 1
    intent = new_intent(situation, IntentKind.CREATE, name, attempt)
    actions = (
        Action(ActionKind.WRITE_INTENT, intent=intent),
        Action(ActionKind.CREATE, name=name, attempt=attempt),
    )
    return booting(situation, reason, message, actions)


def sidestep(situation: Situation) -> Plan:
    """Leave somebody else's sandbox alone and take the suffixed name.

    Not while a create may land that asked for the other name: there would be two.
    """
    desired = situation.desired
    if _may_land(situation):
        message = f"{desired.name} belongs to somebody else, but a create of ours may still land."
        plan = booting(situation, "Waiting", message, ())
        return replace(plan, next_check=situation.timings.unknown_check)
    other = suffixed_name(desired.base_name, desired.identity)
    if not desired.suffix_on_collision or desired.name == other:
        return Plan(
            row=situation.row,
            phase=Phase.FAILED,
            reason="NameCollision",
            message=f"Sandbox {desired.name} belongs to somebody else and is not touched.",
            next_check=situation.timings.unknown_check,
        )
    message = f"{desired.name} belongs to somebody else; creating {other}."
    return _create_next(situation, other, "NameCollision", message)


def _may_land(situation: Situation) -> bool:
    if situation.desired.memory.open_create is None:
        return landing_left(situation) > timedelta(0)
    # An open one was sent again and again, until others were seen to hold the name.
    held_for = situation.observed.held_for or timedelta(0)
    unanswered = situation.desired.last_create_at is not None
    return unanswered and held_for < situation.timings.landing_horizon


def adopt(situation: Situation) -> Plan:
    """Take over what a resource for the same issue left behind.

    A create without an answer may land once that is deleted, as one that was sent twice.
    """
    sandbox = situation.sandbox
    assert sandbox is not None, "only a sandbox that was seen can be adopted"
    desired = situation.desired
    attempt = max(desired.memory.attempt, 1)
    labels = {**sandbox.labels, **desired.identity.labels(desired.name, attempt)}
    action = Action(ActionKind.ADOPT, desired.name, sandbox.id, attempt, labels=labels)
    message = f"Taking over sandbox {sandbox.id} of a resource that is gone."
    create = desired.memory.unanswered_create
    if create is None or create.repeated:
        return booting(situation, "Adopting", message, (action,))
    intent = create.model_copy(update={"repeated": True})
    announced = (Action(ActionKind.WRITE_INTENT, intent=intent), action)
    return booting(situation, "Adopting", message, announced)


def replace_broken(situation: Situation) -> Plan:
    """Delete a sandbox that is proven broken; the next pass creates another."""
    desired, sandbox = situation.desired, situation.sandbox
    assert sandbox is not None, "only a sandbox that was seen can be replaced"
    if not desired.memory.worn and desired.memory.failures + 1 >= desired.max_attempts:
        return _exhausted(situation)
    if situation.observed.breaker is not None and _is_guarded(situation):
        return _held_by_breaker(situation)
    announced = _announced_deletion(situation)
    if announced is not None and announced.reason == UNDELETABLE:
        return abandon(situation)
    delete = Action(ActionKind.DELETE, sandbox_id=sandbox.id)
    why = "it does not answer" if desired.broken else sandbox.error_reason
    message = f"Replacing the sandbox: {why or state_words(situation)}."
    if announced is None:
        attempt, kind = desired.memory.attempt, IntentKind.DELETE
        intent = new_intent(situation, kind, desired.name, attempt, REPLACING)
        announcement = Action(ActionKind.WRITE_INTENT, intent=intent)
        return booting(situation, REPLACING, message, (announcement, delete))
    # Announced once: how long it has been tried counts from there.
    return replace(
        booting(situation, REPLACING, message, (delete,)),
        last_try=situation.now - announced.at >= situation.timings.deletion_stuck,
        next_check=next_deletion(situation),
    )


def _is_guarded(situation: Situation) -> bool:
    """Tell whether the breaker has a say: not where the order was at fault and the disk is empty.

    An edit alone is not enough: whoever edits all resources in peace wants no disk lost later.
    """
    memory = situation.desired.memory
    ordered_anew = memory.worn and not memory.ran
    return situation.sight is not Sight.BUILD_FAILED and not ordered_anew


def _announced_deletion(situation: Situation) -> Intent | None:
    intent, sandbox = situation.desired.memory.intent, situation.sandbox
    if intent is None or intent.kind is not IntentKind.DELETE or sandbox is None:
        return None
    return intent if intent.sandbox_id == sandbox.id else None


def abandon(situation: Situation) -> Plan:
    """Leave an own sandbox that cannot be deleted and take the next generation of its name."""
    desired = situation.desired
    name = generation_name(desired.name)
    if not _has_next_generation(desired.name):
        return too_many_retired(situation)
    message = f"{desired.name} cannot be deleted and holds its name; creating {name}."
    return _create_next(situation, name, "Abandoned", message)


def _has_next_generation(name: str) -> bool:
    return generation(name) < _LAST_GENERATION


def start(situation: Situation) -> Plan:
    """Start a sandbox that rests; one that was asked to and rests on, ever more seldom."""
    sandbox, timings = situation.sandbox, situation.timings
    assert sandbox is not None, "only a sandbox that was seen can be started"
    action = Action(ActionKind.START, sandbox_id=sandbox.id)
    message = f"The sandbox was {sandbox.state}; starting."
    plan = booting(situation, "Starting", message, (action,))
    asked_at = situation.desired.memory.start_asked_at
    if asked_at is None:
        return plan
    asked_for = situation.now - asked_at
    return replace(plan, next_check=growing(asked_for, timings.settle_check, timings.unknown_check))


def recover(situation: Situation) -> Plan:
    """Let Daytona repair the sandbox, once for each incident."""
    desired, sandbox = situation.desired, situation.sandbox
    assert sandbox is not None, "only a sandbox that was seen can be recovered"
    memory, action = desired.memory, Action(ActionKind.RECOVER, sandbox_id=sandbox.id)
    message = f"Recovering from: {sandbox.error_reason or 'an error'}."
    announced = memory.intent
    if announced is not None and announced.kind is IntentKind.RECOVER:
        if memory.recovered_at is not None and memory.recovered_at >= announced.at:
            return wait(situation)
        # Announced, but not known to be sent; asking again does no harm.
        again = booting(situation, "Recovering", message, (action,))
        return replace(again, last_try=True)
    intent = new_intent(situation, IntentKind.RECOVER, desired.name, memory.attempt)
    actions = (Action(ActionKind.WRITE_INTENT, intent=intent), action)
    return booting(situation, "Recovering", message, actions)


def _exhausted(situation: Situation) -> Plan:
    attempts, sandbox = situation.desired.memory.failures + 1, situation.sandbox
    last = (sandbox.error_reason if sandbox is not None else None) or state_words(situation)
    return Plan(
        row=situation.row,
        phase=Phase.FAILED,
        reason=EXHAUSTED,
        message=(
            f"Gave up after {attempts} broken sandboxes; the last one: {last}. "
            "Correct spec.sandbox, or ask for another run with a new spec.run.trigger."
        ),
    )


def _held_by_breaker(situation: Situation) -> Plan:
    return Plan(
        row=situation.row,
        phase=quiet_phase(situation),
        reason="BreakerOpen",
        message=(
            f"The sandbox is {state_words(situation)} and would be replaced, but "
            f"{situation.observed.breaker}. It goes on by itself when fewer are; what is stopped, "
            "finished, given up or deleted does not count."
        ),
        next_check=situation.timings.unknown_check,
    )
