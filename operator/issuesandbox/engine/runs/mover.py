"""What every mover of runs shares: the limits in force, assignments, and words for an end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunPhase
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.chapters import Ending
from issuesandbox.domain.runs.limits import RunLimits, deadlines, limits_in_force
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.errands import Errands, Found
from issuesandbox.engine.runs.steps import Steps
from issuesandbox.engine.switches import Switches
from issuesandbox.ports.resources import EventNote, ResourceKey


@dataclass(frozen=True, slots=True)
class Progress:
    """What a pass learns from the driver."""

    status: Status
    next_check: timedelta | None = None
    event: EventNote | None = None
    doubt: bool = False
    """Whether the sandbox did not answer: the next pass must ask Daytona about it."""
    earlier: EventNote | None = None
    """What happened before that, where one write tells both."""

    @property
    def told(self) -> tuple[EventNote, ...]:
        """Return what happened, in its order."""
        return tuple(each for each in (self.earlier, self.event) if each is not None)


class Mover:
    """Makes some of the moves of all runs."""

    def __init__(
        self,
        steps: Steps,
        errands: Errands,
        timings: Timings,
        defaults: RunLimits,
        switches: Switches,
    ) -> None:
        self._steps = steps
        self._errands = errands
        self._timings = timings
        self._defaults = defaults
        self._switches = switches

    def adopt(self, defaults: RunLimits) -> None:
        """Go by other default limits from now on, also for runs that are under way."""
        self._defaults = defaults

    def drop(self, key: ResourceKey) -> None:
        """Leave a resource alone: it is gone, or another replica acts for it."""
        self._errands.drop(key)
        self._steps.forget(key)

    def in_force(self, scene: Scene) -> Scene:
        """Return the scene with the ends of the limits in force: they may have been edited.

        Also of a run that nothing can be done for now: no move may go by an end that is past.
        """
        run, limits = scene.run, self._limits(scene.resource)
        if run is None or run.outcome is not None or run.deadlines == deadlines(run, limits):
            return scene
        status = chapters.limited(scene.resource.status, limits)
        return replace(scene, resource=scene.resource.model_copy(update={"status": status}))

    def waiting(self, status: Status, scene: Scene) -> Progress:
        """Wait for an errand, but not beyond the run's limit."""
        return Progress(status, until_news(status, scene))

    def _limits(self, resource: IssueSandbox) -> RunLimits:
        asked = resource.spec.run
        return limits_in_force(asked.limits if asked is not None else None, self._defaults)

    def _assignment(self, key: ResourceKey, scene: Scene, sandbox_id: str) -> Assignment:
        resource = scene.resource
        limits, status = self._limits(resource), resource.status
        return Assignment(key, resource, status, sandbox_id, limits, scene.flags, scene.recovery)

    def _over(self, status: Status, ending: Ending, phase: RunPhase, now: datetime) -> Progress:
        status = chapters.ended(status, ending, phase, now)
        good = ending.outcome is Outcome.SUCCEEDED
        words = ending.message or f"The run ended {ending.outcome.value}."
        note = EventNote(ending.reason or ending.outcome.value, words, warning=not good)
        return Progress(status, timedelta(0), note)

    def _again(
        self, status: Status, found: Found[Any], pause: timedelta = timedelta(0)
    ) -> Progress:
        failure = found.failure
        wait = timedelta(seconds=failure.retry_after or 0) if failure is not None else timedelta(0)
        return Progress(status, max(wait, pause, self._timings.settle_check), doubt=True)


def until_news(status: Status, scene: Scene) -> timedelta | None:
    """Return how long the present run may still go on: to its limit, or to its replacement."""
    run = status.run
    if run is None or run.outcome is not None:
        return None
    ends = [run.deadlines.run if run.deadlines is not None else None, scene.replaced_at]
    if run.deadlines is not None and not scene.enforced and run.phase is RunPhase.EXECUTING:
        ends.append(run.deadlines.agent)
    known = [each for each in ends if each is not None]
    return max(min(known) - scene.now, timedelta(0)) if known else None
