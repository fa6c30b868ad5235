"""What the issue is told while a run goes on: the one comment follows the run.

Beside everything else and never in its way: news that cannot be told is lost, the last word is
told by the run itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from issuesandbox.api.status import Comment
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.errands import Errands
from issuesandbox.engine.runs.mover import Progress
from issuesandbox.engine.runs.steps import Steps
from issuesandbox.ports.resources import ResourceKey


class News:
    """Tells issues how their runs go on."""

    def __init__(self, steps: Steps, errands: Errands, timings: Timings) -> None:
        """Tell of each phase a moment later, and within a long one every so often."""
        self._steps = steps
        self._errands = errands
        self._delay = timings.comment_delay.total_seconds()
        self._refresh = timings.comment_refresh

    def share(self, key: ResourceKey, scene: Scene, progress: Progress) -> Progress:
        """Tell of the phase that is written down; remember the comment with the next write."""
        run, written = progress.status.run, scene.run
        if run is None or run.outcome is not None or scene.deleting or scene.paused:
            self.drop(key)
            return progress
        if written is None or written.id != run.id:
            return progress
        assignment = Assignment(key, scene.resource, scene.resource.status, "", RunLimits())
        turn, passed = divmod(scene.now - written.started_at, self._refresh)
        tag = f"news {run.id} {written.phase.value} {written.warned_of} {turn}"
        found = self._errands.ask(key, tag, lambda: self._tell(assignment))
        progress = replace(progress, next_check=_sooner(progress, self._refresh - passed))
        comment = found.value if found is not None else None
        known = progress.status.comment
        if comment is None or (known is not None and known.id == comment.id):
            return progress
        if progress.status == scene.resource.status:
            # Not worth a write of its own: whoever misses it finds the comment by its marker.
            return progress
        return replace(progress, status=chapters.told(progress.status, comment))

    async def _tell(self, assignment: Assignment) -> Comment | None:
        # The run goes first, and a phase that is over by then is no news.
        await asyncio.sleep(self._delay)
        return await self._steps.tell(assignment)

    def drop(self, key: ResourceKey) -> None:
        """Tell no more of a resource's run: the last word is next, or somebody else's."""
        self._errands.drop(key)


def _sooner(progress: Progress, wait: timedelta) -> timedelta:
    return wait if progress.next_check is None else min(wait, progress.next_check)
