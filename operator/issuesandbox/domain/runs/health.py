"""What becomes of a sandbox that does not answer before the agent's start. Pure.

Daytona says that it runs, and yet no command can be run in it. One miss proves nothing; after
two it is restarted, which keeps its disk; if that does not help, it is replaced.
"""

from __future__ import annotations

from enum import StrEnum

from issuesandbox.api.status_run import RunPhase, RunStatus

_MISSES = 2


class Cure(StrEnum):
    """What a sandbox needs before a run can use it."""

    NONE = "nothing"
    RESTART = "a stop and a start"
    REPLACEMENT = "another sandbox in its place"


def cure_of(run: RunStatus | None, attempt: int) -> Cure:
    """Return what the present sandbox, the one with this attempt, needs for a run."""
    if run is None or run.outcome is not None or run.phase is not RunPhase.PREPARING:
        return Cure.NONE
    if run.attempt != attempt or run.probe_misses < _MISSES:
        return Cure.NONE
    return Cure.REPLACEMENT if run.restarts else Cure.RESTART
