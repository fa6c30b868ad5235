"""The run driver: what a pass does for a run.

Reads where the run is from the status alone, asks for the errand that comes next, and writes
what an errand found into the status. Never waits and never writes by itself: the pass does,
guarded by the version that all of this was decided on. That write is also the publish gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from issuesandbox.api.status import Status
from issuesandbox.api.status_run import RunPhase
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.runs.moves import Move, Scene, is_to_be_salvaged, next_move
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.endings import Endings
from issuesandbox.engine.runs.errands import Errands
from issuesandbox.engine.runs.mover import Progress, until_news
from issuesandbox.engine.runs.news import News
from issuesandbox.engine.runs.onward import Onward
from issuesandbox.engine.runs.steps import Steps
from issuesandbox.engine.runs.warnings import with_warning
from issuesandbox.engine.switches import Switches
from issuesandbox.ports.resources import ResourceKey

_ERRANDS = frozenset({Move.PREPARE, Move.EXECUTE, Move.COLLECT, Move.PUBLISH})


class RunDriver:
    """Makes the moves of all runs; one instance serves all resources."""

    def __init__(
        self,
        steps: Steps,
        wake: Callable[[ResourceKey], None],
        timings: Timings,
        defaults: RunLimits,
        switches: Switches | None = None,
    ) -> None:
        self._steps = steps
        errands, switches = Errands(wake), switches or Switches()
        # News ride on the next write, whenever that is: they are worth no pass of their own.
        self._news = News(steps, Errands(lambda _: None), timings)
        onward = Onward(steps, errands, timings, defaults, switches)
        endings = Endings(steps, errands, timings, defaults, switches)
        self._movers = (onward, endings)
        self._endings = endings
        self._debounce = timings.trigger_debounce
        self._warning = timings.deadline_warning
        self._moves: dict[Move, Callable[[ResourceKey, Scene], Progress]] = {
            Move.BEGIN: onward.begin,
            Move.START_OVER: onward.start_over,
            Move.TRY_AGAIN: onward.try_again,
            Move.SKIP: onward.skip,
            Move.PREPARE: onward.prepare,
            Move.EXECUTE: onward.execute,
            Move.COLLECT: onward.collect,
            Move.PUBLISH: onward.publish,
            Move.REFUSE: endings.refuse,
            Move.WITHDRAW: endings.withdraw,
            Move.NOTE_STOP: endings.note_stop,
            Move.KILL: endings.kill,
            Move.CANCEL: endings.cancel,
            Move.TIME_OUT: endings.time_out,
            Move.GIVE_UP: endings.give_up,
            Move.RESCUE: endings.rescue,
            Move.TELL: endings.tell,
            Move.RETELL: endings.retell,
        }

    def adopt(self, defaults: RunLimits) -> None:
        """Go by other default limits from now on, also for runs that are under way."""
        for mover in self._movers:
            mover.adopt(defaults)

    def advance(self, key: ResourceKey, scene: Scene) -> Progress:
        """Make the next move of a resource's run, as far as it can be made now."""
        scene = self._judged(scene)
        progress = with_warning(scene, self._advance(key, scene), self._warning)
        status = chapters.ruled(
            progress.status, scene.policy.recorded(), scene.recovery.recorded(), scene.asked
        )
        progress = replace(progress, status=status)
        return self._news.share(key, scene, progress)

    def look_ahead(self, key: ResourceKey, scene: Scene) -> bool:
        """Begin the errand that comes next, right after what it rests on was written down.

        Tell whether there is one; what it finds, the next pass sees to.
        """
        scene = self._judged(scene)
        move = next_move(scene)
        if move not in _ERRANDS:
            return False
        self._moves[move](key, scene)
        return True

    def scout(self, key: ResourceKey, scene: Scene) -> None:
        """Find out what a run needs to know, while its sandbox is brought up."""
        if scene.turn is Turn.ADMITTED and (scene.run is None or scene.run.outcome is not None):
            status = scene.resource.status
            self._steps.scout(Assignment(key, scene.resource, status, "", RunLimits()))

    def hurry(self, key: ResourceKey, scene: Scene) -> None:
        """Begin the kill of a run that is to end, before Daytona is asked for anything."""
        scene = self._judged(scene)
        if next_move(scene) in (Move.NOTE_STOP, Move.KILL):
            self._endings.kill(key, scene)

    def salvage(self, key: ResourceKey, scene: Scene) -> Progress | None:
        """Save the work in a sandbox that is given up, once; None where there is none to save."""
        scene = self._judged(scene)
        return self._endings.salvage(key, scene) if is_to_be_salvaged(scene) else None

    def may_be_left(self, key: ResourceKey, scene: Scene) -> bool:
        """Tell whether a sandbox can be left behind: no agent of ours goes on in it."""
        kills = next_move(scene) in (Move.NOTE_STOP, Move.KILL)
        unstarted = scene.run is None or scene.run.phase is RunPhase.PREPARING
        return unstarted or not kills or self._endings.has_killed(key, scene)

    def _judged(self, scene: Scene) -> Scene:
        """Return the scene as the rules are to see it, with all that is set for every run."""
        return self._endings.in_force(replace(scene, debounce=self._debounce))

    def _advance(self, key: ResourceKey, scene: Scene) -> Progress:
        move = next_move(scene)
        if move is Move.NONE:
            status = scene.resource.status
            return Progress(status, until_news(status, scene))
        return self._moves[move](key, scene)

    def has_told(self, key: ResourceKey, scene: Scene) -> bool:
        """Tell whether the comment on the issue says the last word already."""
        return self._endings.has_told(key, scene)

    async def close(self, key: ResourceKey, scene: Scene) -> Status:
        """End the run of a resource that goes for good, its sandbox is gone already."""
        self._news.drop(key)
        return await self._endings.close(key, scene)

    def drop(self, key: ResourceKey) -> None:
        """Leave a resource alone: it is gone, or another replica acts for it."""
        self._endings.drop(key)
        self._news.drop(key)
        # Not when a run begins: that is what it was found out for.
        self._steps.recall(key)
