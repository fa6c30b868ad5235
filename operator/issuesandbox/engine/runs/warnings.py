"""The warning before a limit ends a run: once for each end, and early enough to change it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.limits import next_warning
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.engine.runs.mover import Progress
from issuesandbox.ports.resources import EventNote


def with_warning(scene: Scene, progress: Progress, lead: timedelta) -> Progress:
    """Return the progress with the warning in it if that is due, else with the time for it."""
    run = progress.status.run
    ending = progress.status.stop_requested_at is not None
    quiet = ending or not scene.flags.authoritative_timeout
    due = next_warning(run, lead) if run is not None and not quiet else None
    if due is None:
        return progress
    wait = max(due.at - scene.now, timedelta(0))
    if wait or progress.event is not None:
        check = wait if progress.next_check is None else min(wait, progress.next_check)
        return replace(progress, next_check=check)
    text = (
        f"The run is ended at {due.end:%H:%M:%S} UTC by spec.run.{due.limit}, "
        f"in {(due.end - scene.now).total_seconds():.0f} s; raise it to let the run go on."
    )
    note = EventNote("DeadlineNear", text, warning=True)
    return replace(progress, status=chapters.warned(progress.status, due.end), event=note)
