"""Saving: work that was not published goes where people find it, as far as that is allowed.

A branch is a push like any other, so it is not sent under a pause, a freeze or a stop: the sandbox
is kept then, and the work in it.
"""

from __future__ import annotations

from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.api.spec import DesiredState
from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.status_run import SavedWork
from issuesandbox.domain.collection import CollectError
from issuesandbox.domain.publication import wip_branch
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.collecting import Collector, Work
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.patience import FINAL, patiently
from issuesandbox.engine.runs.sources import destination
from issuesandbox.ports.errors import CallError, Denied, Unavailable
from issuesandbox.ports.remote import ZERO, Pushed, PushOrder, PushVerdict

_PAUSED, _STOPPED = "Paused", "Stopped"


class Saver:
    """Saves the work of all runs."""

    def __init__(self, outside: Outside, collector: Collector) -> None:
        self._outside = outside
        self._collector = collector

    async def save(self, assignment: Assignment, work: Work, kind: SaveWork) -> SavedWork | None:
        """Put unpublished work where people find it; only a pause is a reason to come again."""
        commit = work.collection.commit
        if commit is None or kind is SaveWork.OFF:
            return None
        try:
            if kind is SaveWork.PATCH:
                return await self._patch(assignment)
            return await self._branch(assignment, commit, work.pack)
        except (CallError, CollectError) as error:
            if error.code == _PAUSED:
                raise Unavailable(str(error), code=_PAUSED) from None
            return None

    async def _branch(self, assignment: Assignment, commit: str, pack: bytes) -> SavedWork | None:
        name = wip_branch(assignment.resource.spec.issue.number, assignment.run.id)
        order = PushOrder(f"refs/heads/{name}", ZERO, commit, pack)
        try:
            answer = await patiently(lambda: self._send(assignment, order))
        except FINAL as error:
            if error.code in (_PAUSED, _STOPPED):
                raise
            answer = Pushed(PushVerdict.REFUSED, str(error))
        if answer.verdict is PushVerdict.ACCEPTED:
            return SavedWork(kind=SaveWork.BRANCH, ref=name, at=self._outside.clock.now())
        # A ConfigMap goes with its resource.
        return None if assignment.deleting else await self._patch(assignment)

    async def _send(self, assignment: Assignment, order: PushOrder) -> Pushed:
        url, token = await destination(assignment, self._outside)
        await self._check_leave(assignment)
        return await self._outside.remote.push(url, token, order)

    async def _check_leave(self, assignment: Assignment) -> None:
        """Raise unless a push is allowed at this very moment."""
        fresh = await self._outside.fresh(assignment)
        self._outside.check_charge(assignment)
        if fresh is None or fresh.spec.desired_state is DesiredState.STOPPED:
            raise Denied("the run was stopped, so nothing is pushed", code=_STOPPED)
        paused = fresh.metadata.annotations.get(ANNOTATION_PAUSED) == "true"
        if paused or self._outside.is_frozen():
            raise Denied("nothing is pushed during a pause", code=_PAUSED)

    async def _patch(self, assignment: Assignment) -> SavedWork:
        work = await self._collector.work(assignment, save=SaveWork.PATCH)
        name = f"{assignment.key.name[:200]}-{assignment.run.id}-patch"
        self._outside.check_charge(assignment)
        await self._outside.ledgers.put(assignment.key, name, {"patch": work.patch or ""})
        return SavedWork(kind=SaveWork.PATCH, ref=name, at=self._outside.clock.now())
