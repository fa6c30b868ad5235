"""For how long the work of a run is tried to be saved, and in which way. Pure; saves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status_run import RunStatus
from issuesandbox.domain.cleanup import later
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import time_to_save

# The rest of the time is for a patch, which needs the sandbox once more.
_FOR_THE_BRANCH = 0.75


@dataclass(frozen=True, slots=True)
class Patience:
    """When to give up."""

    began: datetime
    branch_until: datetime
    """From then on a patch has to do where no branch could be pushed."""
    until: datetime

    @classmethod
    def of(cls, resource: IssueSandbox, timings: Timings, now: datetime) -> Patience:
        """Return the patience with the work of the present run, or of the last one."""
        run, time = resource.status.run, time_to_save(resource, timings)
        if run is not None and run.finished_at is not None:
            end = run.finished_at
            return cls(end, later(end, time * _FOR_THE_BRANCH), later(end, time))
        if run is not None and run.publish is not None:
            # Whoever cannot save it during the push does so after the run.
            until = later(run.publish.at, timings.work_hold)
            return cls(run.publish.at, until, until)
        return cls(now, now, now)


def is_going_on(run: RunStatus) -> bool:
    """Tell whether the work is that of a run which begins again elsewhere."""
    return run.outcome is None and run.publish is None


def is_saved(run: RunStatus) -> bool:
    """Tell whether the work of the present attempt is saved; an earlier one's says nothing."""
    began, saved = run.agent_started_at, run.saved_work
    return began is not None and saved is not None and saved.at >= began
