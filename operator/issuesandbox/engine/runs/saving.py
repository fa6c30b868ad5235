"""Saving: work that was not published goes where people find it, as far as that is allowed.

A branch is a push like any other, so it is not sent under a pause, a freeze or a stop: the sandbox
is kept then, and the work in it. Each call is one try; the rules of the run say when to come again.
"""

from __future__ import annotations

import asyncio

from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DesiredState
from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.status_run import RunStatus, SavedWork
from issuesandbox.domain.collection import CollectError
from issuesandbox.domain.publication import wip_branch
from issuesandbox.domain.runs.rescue import Patience, is_going_on
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.collecting import Collector, Work
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.patience import FINAL
from issuesandbox.engine.runs.sources import destination
from issuesandbox.ports.errors import CallError, Denied, Invalid, Unavailable
from issuesandbox.ports.remote import ZERO, Pushed, PushOrder, PushVerdict

# The code of a failure that lasts as long as somebody wants it to.
PAUSED = "Paused"
_STOPPED = "Stopped"


class Saver:
    """Saves the work of all runs."""

    def __init__(self, outside: Outside, collector: Collector) -> None:
        self._outside = outside
        self._collector = collector

    async def save(self, assignment: Assignment, work: Work, kind: SaveWork) -> SavedWork | None:
        """Put unpublished work where people find it; None if that is not wanted.

        Raises what stood in the way: `Invalid` if no other try will help.
        """
        commit = work.collection.commit
        if commit is None or kind is SaveWork.OFF:
            return None
        try:
            if kind is SaveWork.PATCH:
                return await self._patch(assignment)
            return await self._branch(assignment, commit, work.pack)
        except CollectError as error:
            raise Invalid(f"no patch could be made: {error.code}", code=error.code) from error
        except Denied as error:
            if error.code == _STOPPED:
                return None
            raise Unavailable(str(error), code=error.code) from error

    async def _branch(self, assignment: Assignment, commit: str, pack: bytes) -> SavedWork:
        name = wip_branch(assignment.resource.spec.issue.number, _label(assignment.run))
        order = PushOrder(f"refs/heads/{name}", ZERO, commit, pack)
        try:
            answer = await self._pushed(assignment, order)
        except FINAL as error:
            if error.code in (PAUSED, _STOPPED):
                raise
            answer = Pushed(PushVerdict.REFUSED, str(error))
        except CallError as error:
            if self._outside.clock.now() < self._patience(assignment).branch_until:
                raise
            return await self._patch_instead(assignment, error)
        if answer.verdict is PushVerdict.ACCEPTED:
            return SavedWork(kind=SaveWork.BRANCH, ref=name, at=self._outside.clock.now())
        refusal = Invalid(f"the remote refused the branch: {answer.reason}")
        return await self._patch_instead(assignment, refusal)

    async def _patch_instead(self, assignment: Assignment, failure: CallError) -> SavedWork:
        """Save a patch because there is no branch; where there can be none, say why no branch."""
        if assignment.deleting:
            # A ConfigMap goes with its resource.
            raise failure
        try:
            return await self._patch(assignment)
        except CollectError as error:
            raise failure from error

    def _patience(self, assignment: Assignment) -> Patience:
        outside = self._outside
        return Patience.of(assignment.resource, outside.timings, outside.clock.now())

    async def _pushed(self, assignment: Assignment, order: PushOrder) -> Pushed:
        """Push for as long as a branch is hoped for, so that time is left for a patch."""
        left = self._patience(assignment).branch_until - self._outside.clock.now()
        seconds = max(left, self._outside.timings.work_hold / 2).total_seconds()
        try:
            async with asyncio.timeout(seconds):
                return await self._send(assignment, order)
        except TimeoutError:
            raise Unavailable(f"nothing could be pushed within {seconds:g} s") from None

    async def _send(self, assignment: Assignment, order: PushOrder) -> Pushed:
        url, token = await destination(assignment, self._outside)
        await self._check_leave(assignment)
        return await self._outside.remote.push(url, token, order)

    async def _check_leave(self, assignment: Assignment) -> None:
        """Raise unless a push is allowed at this very moment."""
        fresh = await self._outside.fresh(assignment)
        self._outside.check_charge(assignment)
        if fresh is None or _is_stopped(fresh, assignment.run):
            raise Denied("the run was stopped, so nothing is pushed", code=_STOPPED)
        paused = fresh.metadata.annotations.get(ANNOTATION_PAUSED) == "true"
        if paused or self._outside.is_frozen():
            raise Denied("nothing is pushed during a pause", code=PAUSED)

    async def _patch(self, assignment: Assignment) -> SavedWork:
        work = await self._collector.work(assignment, save=SaveWork.PATCH)
        name = f"{assignment.key.name[:200]}-{_label(assignment.run)}-patch"
        self._outside.check_charge(assignment)
        await self._outside.ledgers.put(assignment.key, name, {"patch": work.patch or ""})
        return SavedWork(kind=SaveWork.PATCH, ref=name, at=self._outside.clock.now())


def _label(run: RunStatus) -> str:
    """Return what to call the work: a run that begins again may have more to save."""
    return f"{run.id}-{run.attempt}" if is_going_on(run) else run.id


def _is_stopped(fresh: IssueSandbox, run: RunStatus) -> bool:
    """Tell whether nothing of a run may be pushed any more."""
    # Whoever deletes the resource of a run that goes on stops the run.
    asked = fresh.metadata.deletion_timestamp or fresh.status.stop_requested_at
    ended = is_going_on(run) and asked is not None
    return ended or fresh.spec.desired_state is DesiredState.STOPPED
