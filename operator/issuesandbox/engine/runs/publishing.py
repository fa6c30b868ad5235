"""Publishing: the operator itself pushes the commit, then opens or updates the pull request.

Called only after the push was decided and written down. The remote compares the branch with the
tip that was recorded before the agent started, so a repeated push does no harm, and a branch
that somebody else moved is left alone.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from issuesandbox.api.spec import DesiredState
from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.status_run import Outcome, Publication, PullRequest
from issuesandbox.domain.collection import CollectError
from issuesandbox.domain.publication import pull_order, revised, way_to_save
from issuesandbox.domain.runs.chapters import Ending
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import ahead
from issuesandbox.engine.runs.collecting import Collector, Work
from issuesandbox.engine.runs.following import SURVIVES
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.patience import FINAL, patiently
from issuesandbox.engine.runs.saving import Saver
from issuesandbox.engine.runs.sources import destination, reason_of
from issuesandbox.engine.runs.steps import Published, Rescued
from issuesandbox.ports.errors import CallError, Invalid, NotFound, Unavailable
from issuesandbox.ports.github import GitHub, PullView, Token
from issuesandbox.ports.remote import Pushed, PushOrder, PushVerdict
from issuesandbox.ports.resources import ResourceKey


@dataclass(frozen=True, slots=True)
class _Way:
    """What has to be known to open or update a pull request."""

    base: str
    known: PullView | None


class Publisher:
    """Publishes the work of all runs."""

    def __init__(self, outside: Outside, collector: Collector) -> None:
        self._outside = outside
        self._collector = collector
        self._saver = Saver(outside, collector)
        self._rights: dict[ResourceKey, tuple[str, str, Token]] = {}
        self._ways: dict[ResourceKey, tuple[str, _Way]] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop the right to push for a resource."""
        self._rights.pop(key, None)
        self._ways.pop(key, None)

    async def authorize(self, assignment: Assignment) -> Ending | None:
        """Get the right to push, before the push is decided; an `Ending` if there is none."""
        try:
            url, token = await destination(assignment, self._outside)
        except FINAL as error:
            text = f"The work cannot be pushed: {error}"
            return Ending(Outcome.FAILED, reason_of(error, "PublishDenied"), text)
        self._rights[assignment.key] = (assignment.run.id, url, token)
        with suppress(CallError):
            self._ways[assignment.key] = (assignment.run.id, await self._way(assignment))
        return None

    async def publish(self, assignment: Assignment) -> Published:
        """Send the push that was decided, then open or update the pull request."""
        run = assignment.run
        assert run.publish is not None, "only a decided push is sent"
        async with ahead(self._known_way(assignment)) as looked:
            return await self._published(assignment, run.publish, looked)

    async def _published(
        self, assignment: Assignment, decided: Publication, looked: asyncio.Task[_Way]
    ) -> Published:
        commit, ref = decided.commit, f"refs/heads/{assignment.run.branch}"
        url, token = await self._right(assignment)
        work = self._collector.remembered(assignment, commit)
        if work is None and (await self._outside.remote.refs(url, token)).get(ref) != commit:
            # Another replica collected it and died before it pushed.
            work = await self._work(assignment, commit)
        if work is not None:
            self._outside.check_charge(assignment)
            order = PushOrder(ref, decided.old, commit, work.pack)
            answer = await self._outside.remote.push(url, token, order)
            if answer.verdict is not PushVerdict.ACCEPTED:
                return await self._refused(assignment, work, answer)
        return await self._propose(assignment, looked)

    async def _opened(self, assignment: Assignment) -> PullRequest | None:
        """Return the pull request that was open before the stop came, so that nobody misses it."""
        github, branch = self._outside.github, assignment.run.branch or ""
        if github is None:
            return None
        try:
            pull = await github.open_pull(assignment.repository, branch)
        except CallError:
            return None
        return _shown(pull) if pull is not None else None

    async def _work(self, assignment: Assignment, commit: str) -> Work:
        try:
            return await self._collector.decided(assignment, commit)
        except NotFound:
            raise Unavailable("the sandbox lost the work that was to be published") from None

    async def _right(self, assignment: Assignment) -> tuple[str, Token]:
        run_id, url, token = self._rights.get(assignment.key, ("", "", None))
        if token is not None and run_id == assignment.run.id:
            return url, token
        return await destination(assignment, self._outside)

    async def _refused(self, assignment: Assignment, work: Work, answer: Pushed) -> Published:
        if answer.verdict is not PushVerdict.MOVED:
            text = f"GitHub refused the push: {answer.reason}."
            return Published(Ending(Outcome.FAILED, "PublishFailed", text))
        save = assignment.recovery.save_work
        # Nothing but the name stands in the way, so another one will do.
        kind = save if save is SaveWork.OFF else SaveWork.BRANCH
        saved = await self._saver.save(assignment, work, kind)
        where = f" The work is in {saved.ref}." if saved is not None else ""
        text = f"Somebody else moved branch {assignment.run.branch} during the run.{where}"
        return Published(Ending(Outcome.FAILED, "BranchMoved", text), saved=saved)

    async def _propose(self, assignment: Assignment, looked: asyncio.Task[_Way]) -> Published:
        github, run = self._outside.github, assignment.run
        try:
            if github is None:
                await self._check_stop(assignment)
                text = (
                    f"Branch {run.branch} is pushed; there are no credentials for a pull request."
                )
                return Published(Ending(Outcome.SUCCEEDED, "Pushed", text), pushed=True)
            pull = await patiently(lambda: self._pull(assignment, github, looked))
        except _TooLate:
            text = f"The stop came after the push was decided; branch {run.branch} has the work."
            ending = Ending(Outcome.CANCELLED, "TooLateToStop", text)
            return Published(ending, pushed=True, pull=await self._opened(assignment))
        except CallError as error:
            text = f"Branch {run.branch} is pushed, but no pull request could be opened: {error}"
            return Published(Ending(Outcome.FAILED, "PullRequestFailed", text), pushed=True)
        ending = Ending(Outcome.SUCCEEDED, None, f"See {pull.url}.")
        return Published(ending, pushed=True, pull=_shown(pull))

    async def _known_way(self, assignment: Assignment) -> _Way:
        """Return what was found while the work was collected, once, or look beside the push."""
        run_id, way = self._ways.pop(assignment.key, ("", None))
        return (
            way if way is not None and run_id == assignment.run.id else await self._way(assignment)
        )

    async def _way(self, assignment: Assignment) -> _Way:
        """Return where the pull request goes, and the one that is open from the branch."""
        github, repository = self._outside.github, assignment.repository
        if github is None:
            return _Way("", None)
        async with ahead(github.open_pull(repository, assignment.run.branch or "")) as known:
            base = assignment.publish.base or (await github.repository(repository)).default_branch
            return _Way(base, await known)

    async def _pull(
        self, assignment: Assignment, github: GitHub, looked: asyncio.Task[_Way]
    ) -> PullView:
        repository = assignment.repository
        await asyncio.wait((looked,))
        # A look that failed is repeated, as often as the rest.
        way = await self._way(assignment) if looked.exception() else looked.result()
        order, known = pull_order(assignment.resource, assignment.status, way.base), way.known
        # Right before each try: it may be repeated for a while.
        await self._check_stop(assignment)
        self._outside.check_charge(assignment)
        if known is None:
            return await github.create_pull(repository, order)
        texts = revised(order, known.title, known.body)
        return await github.update_pull(
            repository, known.number, title=texts.title, body=texts.body
        )

    async def _check_stop(self, assignment: Assignment) -> None:
        fresh = await self._outside.fresh(assignment)
        deleting = fresh is None or fresh.metadata.deletion_timestamp is not None
        if deleting or (fresh and fresh.spec.desired_state is DesiredState.STOPPED):
            raise _TooLate

    async def rescue(self, assignment: Assignment) -> Rescued:
        """Save the work of a run that ended badly; its agent is dead by then."""
        save, deleting = assignment.recovery.save_work, assignment.deleting
        kind = way_to_save(save, publishes=assignment.publishes, deleting=deleting)
        try:
            work = await self._collector.work(assignment, save=kind)
        except CollectError as error:
            if error.code == SURVIVES:
                raise Invalid(str(error), code=error.code) from error
            return Rescued(await self._collector.harvest(assignment, None))
        if work.leaks:
            kind = way_to_save(save, publishes=False, deleting=deleting)
        harvest = await self._collector.harvest(assignment, work)
        return Rescued(harvest, await self._saver.save(assignment, work, kind))


class _TooLate(Exception):
    """A stop came after the push was decided."""


def _shown(pull: PullView) -> PullRequest:
    return PullRequest(number=pull.number, url=pull.url, state=pull.state)
