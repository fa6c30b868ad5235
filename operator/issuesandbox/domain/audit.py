"""Whether a branch was written after its run was stopped or out of time. Pure.

Judged by what the remote says of its own refs and by what the resource recorded: whoever pushes
is not asked. A push that was decided before the stop is finished after it, and is no fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status_run import Outcome

# GitHub's clock and ours may differ by this much.
_CLOCKS: Final = timedelta(seconds=2)


class Ending(StrEnum):
    """What forbade the push."""

    STOP = "stop"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class RefChange:
    """A branch was moved, as the remote recorded it."""

    after: str
    at: datetime
    actor: str


@dataclass(frozen=True, slots=True)
class Case:
    """A run whose branch must not have been written after a moment."""

    run_id: str
    repository: str
    branch: str
    ending: Ending
    ended_at: datetime
    finished_at: datetime
    commit: str | None = None
    decided_at: datetime | None = None
    """When the push was decided, if it was."""

    @property
    def allowed(self) -> bool:
        """Tell whether a push was decided in time."""
        return self.decided_at is not None and self.decided_at <= self.ended_at


def case_of(resource: IssueSandbox) -> Case | None:
    """Return what is to be looked at for the last run of a resource, or None."""
    run, given = resource.status.run, resource.spec.repository
    if run is None or run.branch is None or run.finished_at is None:
        return None
    if given is not None and given.clone_url is not None:
        # By its name alone: to look at a repository in vain does no harm.
        name = given.clone_url.rstrip("/").removesuffix(".git").casefold()
        if not name.endswith(f"/{resource.spec.issue.repository.casefold()}"):
            return None  # not a repository that GitHub could be asked about
    stopped = run.outcome is Outcome.CANCELLED and run.stop_requested_at is not None
    if not stopped and run.outcome is not Outcome.TIMED_OUT:
        return None
    return Case(
        run_id=run.id,
        repository=resource.spec.issue.repository,
        branch=run.branch,
        ending=Ending.STOP if stopped else Ending.TIMEOUT,
        ended_at=(run.stop_requested_at if stopped else None) or run.finished_at,
        finished_at=run.finished_at,
        commit=run.commit,
        decided_at=run.publish.at if run.publish is not None else None,
    )


def is_broken(case: Case, changes: Iterable[RefChange], own_login: str, until: datetime) -> bool:
    """Tell whether any of the branch's changes is a push of this run that must not be.

    What came after `until` may belong to the next run.
    """
    if case.allowed:
        return False
    return any(_is_its_push(case, each, own_login, until) for each in changes)


def _is_its_push(case: Case, change: RefChange, own_login: str, until: datetime) -> bool:
    if case.commit is not None and change.after == case.commit:
        return True
    late = change.at > case.ended_at + _CLOCKS
    return late and change.actor == own_login and change.at < until
