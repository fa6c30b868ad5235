"""What a pass saw, as the rules of a run need it."""

from __future__ import annotations

from datetime import datetime

from issuesandbox.domain.model import ActionKind, Plan
from issuesandbox.domain.naming import attempt_of
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.sandbox import SandboxView
from issuesandbox.domain.situation import NOTHING_RUNS
from issuesandbox.domain.states import Sight
from issuesandbox.domain.steps_making import EXHAUSTED, REPLACING
from issuesandbox.engine.orders import asked_for
from issuesandbox.engine.reading import Reading

# Reasons of a plan that no waiting will change.
_FINAL = frozenset({EXHAUSTED, "NameCollision"})

# What is being destroyed may run a moment longer.
_STILL = frozenset(each.name for each in NOTHING_RUNS - {Sight.DESTROYING})

_RETURNING = frozenset({ActionKind.START, ActionKind.RECOVER})


def is_doomed(plan: Plan) -> bool:
    """Tell whether a sandbox that is there is about to be given up, and that is not announced."""
    announces = any(each.kind is ActionKind.WRITE_INTENT for each in plan.actions)
    return plan.reason == EXHAUSTED or (plan.reason == REPLACING and announces)


def scene_of(
    reading: Reading, plan: Plan, now: datetime, created: SandboxView | None = None
) -> Scene:
    """Return the scene of a run, from the resource and from the plan for its sandbox.

    A sandbox that this very pass created is not in the resource yet.
    """
    memory = reading.desired.memory
    sandbox_id, attempt = memory.sandbox_id, memory.attempt
    if created is not None:
        sandbox_id, attempt = created.id, attempt_of(created.labels, attempt)
    sight = plan.row.partition("/")[0]
    final = plan.reason in _FINAL and not plan.actions
    return Scene(
        resource=reading.resource,
        turn=reading.facts.turn,
        now=now,
        sandbox_id=sandbox_id if plan.ready and plan.synced else None,
        attempt=attempt,
        still=sight in _STILL,
        returning=any(each.kind in _RETURNING for each in plan.actions),
        doomed=is_doomed(plan),
        dead_end=plan.message if final else None,
        flags=reading.flags,
        deaf=reading.deaf,
        policy=reading.policy,
        recovery=reading.recovery,
        asked=asked_for(reading) if reading.is_up_to_date else None,
    )
