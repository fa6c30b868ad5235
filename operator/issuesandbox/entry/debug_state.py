"""What `/debug/state` shows: where this replica is, in figures and the names of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from issuesandbox.engine.breaker import Breaker
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.roles import Role
from issuesandbox.engine.roll import Roll
from issuesandbox.engine.tuning import Tuning
from issuesandbox.engine.workqueue import WorkQueue
from issuesandbox.entry.config import shown
from issuesandbox.entry.setting_fields import names
from issuesandbox.entry.settings import Settings
from issuesandbox.ports.resources import ResourceKey


def debug_state(
    role: Role,
    fleet: Fleet,
    breaker: Breaker,
    queue: WorkQueue[ResourceKey],
    roll: Roll,
    tuning: Tuning[Settings],
) -> Mapping[str, Any]:
    """Return the state of a replica; nothing in it changes by being looked at."""
    settings = tuning.current
    return {
        "leases": role.held(),
        "fleet": {
            "ageSeconds": fleet.age,
            "size": fleet.view.size if fleet.view is not None else None,
            "failures": fleet.failures,
            "breakerOpen": breaker.is_open,
        },
        "queue": {
            "depth": queue.depth,
            "inFlight": queue.in_flight,
            "overdueSeconds": queue.overdue(),
        },
        "phases": {phase: count for phase, count in roll.phases.items() if count},
        "frozen": tuning.frozen,
        "settings": {
            "problem": tuning.problem,
            "inForce": {
                name: shown(name, getattr(settings, each)) for name, each in names().items()
            },
        },
    }
