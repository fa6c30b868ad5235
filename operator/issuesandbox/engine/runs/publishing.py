"""Publishing: the operator itself pushes the commit, then opens or updates the pull request.

Called only after the push was decided and written down. The remote compares the branch with the
tip that was recorded before the agent started, so a repeated push does no harm, and a branch
that somebody else moved is left alone.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from issuesandbox.api.spec import DesiredState, RepositorySource
from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.status_run import Outcome, Publication, PullRequest, SavedWork
from issuesandbox.domain.collection import CollectError
from issuesandbox.domain.publication import pull_order, revised, way_to_save
from issuesandbox.domain.runs.chapters import Ending, Harvest
from issuesandbox.domain.runs.limits import overdue
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import ahead
from issuesandbox.engine.runs.collecting import Collector, Work
from issuesandbox.engine.runs.following import SURVIVES
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.patience import FINAL
from issuesandbox.engine.runs.rights import Rights
from issuesandbox.engine.runs.saving import Saver
from issuesandbox.engine.runs.sources import is_own, reason_of
from issuesandbox.engine.runs.steps import Published, Rescued
from issuesandbox.ports.errors import CallError, Denied, Invalid, NotFound, Unavailable
from issuesandbox.ports.github import GitHub, PullView, RepositoryView
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
        self._rights = Rights(outside)
        self._ways: dict[ResourceKey, tuple[str, _Way | None]] = {}
        self._sights: dict[ResourceKey, tuple[str, float]] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop the right to push for a resource."""
        self._rights.forget(key)
        self._ways.pop(key, None)
        self._sights.pop(key, None)

    async def authorize(self, assignment: Assignment) -> Ending | None:
        """Get the right to push, before the push is decided; an `Ending` if there is none."""
        github, view = self._outside.github, None
        try:
            if github is not None:
                view = await github.repository(assignment.repository)
            await self._rights.renew(assignment, view)
        except FINAL as error:
            text = f"The work cannot be pushed: {error}"
            return Ending(Outcome.FAILED, reason_of(error, "PublishDenied"), text)
        with suppress(CallError):
            self._ways[assignment.key] = (assignment.run.id, await self._way(assignment, view))
        return None

    async def publish(self, assignment: Assignment) -> Published:
        """Send the push that was decided, then open or update the pull request."""
        decided = assignment.run.publish
        assert decided is not None, "only a decided push is sent"
        async with ahead(self._known_way(assignment)) as looked:
            failed = None
            if decided.confirmed_at is None:
                failed = await self._tried(assignment, decided)
            return failed or await self._propose(assignment, looked)

    async def _tried(self, assignment: Assignment, decided: Publication) -> Published | None:
        """Send the push; return what came of it instead if the remote has not got the commit."""
        since = self._first_sight(assignment)
        try:
            return await self._sent(assignment, decided)
        except CallError as error:
            if isinstance(error, Denied):
                self._rights.forget(assignment.key)
            taken = self._outside.clock.monotonic() - since
            if taken < self._outside.timings.work_hold.total_seconds():
                raise
            if await self._has_landed(assignment, decided.commit):
                return None
            return Published(Ending(Outcome.FAILED, "PublishFailed", str(error)))

    def _first_sight(self, assignment: Assignment) -> float:
        """Return when this process first saw the push: who takes over late has its tries, too."""
        run_id, since = self._sights.get(assignment.key, ("", 0.0))
        if run_id != assignment.run.id:
            since = self._outside.clock.monotonic()
            self._sights[assignment.key] = (assignment.run.id, since)
        return since

    async def _sent(self, assignment: Assignment, decided: Publication) -> Published | None:
        commit, ref = decided.commit, _ref(assignment)
        url, token = await self._rights.of(assignment)
        work = self._collector.remembered(assignment, commit)
        if work is None and (await self._outside.remote.refs(url, token)).get(ref) != commit:
            # Another replica collected it and died before it pushed.
            work = await self._work(assignment, commit)
        if work is None:
            return None
        self._outside.check_charge(assignment)
        order = PushOrder(ref, decided.old, commit, work.pack)
        answer = await self._outside.remote.push(url, token, order)
        if answer.verdict is PushVerdict.ACCEPTED:
            return None
        return await self._refused(assignment, work, answer)

    async def _has_landed(self, assignment: Assignment, commit: str) -> bool:
        """Tell whether a push took effect whose answer was lost."""
        try:
            url, token = await self._rights.of(assignment)
            return (await self._outside.remote.refs(url, token)).get(_ref(assignment)) == commit
        except CallError:
            return False

    async def _work(self, assignment: Assignment, commit: str) -> Work:
        try:
            return await self._collector.decided(assignment, commit)
        except NotFound:
            raise Unavailable("the sandbox lost the work that was to be published") from None

    async def _refused(self, assignment: Assignment, work: Work, answer: Pushed) -> Published:
        if answer.verdict is not PushVerdict.MOVED:
            text = f"GitHub refused the push: {answer.reason}."
            return Published(Ending(Outcome.FAILED, "PublishFailed", text))
        save = assignment.recovery.save_work
        # Nothing but the name stands in the way, so another one will do.
        kind = save if save is SaveWork.OFF else SaveWork.BRANCH
        saved: SavedWork | None = None
        with suppress(CallError):
            # What fails now is tried again after the run, for longer.
            saved = await self._saver.save(assignment, work, kind)
        where = f" The work is in {saved.ref}." if saved is not None else ""
        text = f"Somebody else moved branch {assignment.run.branch} during the run.{where}"
        return Published(Ending(Outcome.FAILED, "BranchMoved", text), saved=saved)

    async def _propose(
        self, assignment: Assignment, looked: asyncio.Task[_Way | None]
    ) -> Published:
        await asyncio.wait((looked,))
        try:
            # A look that failed is repeated.
            way = await self._way(assignment) if looked.exception() else looked.result()
        except CallError as error:
            stopped = await self._stopped(assignment)
            return stopped or await self._unproposed(assignment, error)
        # Right before each try. What Kubernetes or the lease says is no failure of GitHub's.
        stopped = await self._stopped(assignment)
        return stopped or await self._proposed(assignment, way)

    async def _stopped(self, assignment: Assignment) -> Published | None:
        """Return that a stop came after the push was decided, if one did."""
        fresh = await self._outside.fresh(assignment)
        stays = fresh is not None and fresh.metadata.deletion_timestamp is None
        if stays and fresh and fresh.spec.desired_state is not DesiredState.STOPPED:
            return None
        branch = assignment.run.branch
        text = f"The stop came after the push was decided; branch {branch} has the work."
        ending = Ending(Outcome.CANCELLED, "TooLateToStop", text)
        return Published(ending, pushed=True, pull=await self._opened(assignment))

    async def _proposed(self, assignment: Assignment, way: _Way | None) -> Published:
        github, branch = self._outside.github, assignment.run.branch
        if github is None or way is None:
            why = "there are no credentials for a pull request"
            if github is not None:
                why = "a pull request is opened in the issue's own repository alone"
            text = f"Branch {branch} is pushed; {why}."
            return Published(Ending(Outcome.SUCCEEDED, "Pushed", text), pushed=True)
        self._outside.check_charge(assignment)
        try:
            pull = await _pull(assignment, github, way)
        except CallError as error:
            return await self._unproposed(assignment, error)
        if way.known is None or pull.state == "open":
            return _success(_shown(pull))
        # It was merged or closed since it was seen; nobody would find what was pushed after that.
        stopped = await self._stopped(assignment)
        return stopped or await self._proposed(assignment, replace(way, known=None))

    async def _unproposed(self, assignment: Assignment, error: CallError) -> Published:
        """Return that there is no pull request yet, or that there will be none."""
        run = assignment.run
        late = overdue(run, self._outside.clock.now()) is not None
        if not late and not isinstance(error, FINAL):
            return Published(None, pushed=True, setback=error)
        # It may have been opened though the answer was lost.
        pull = await self._opened(assignment)
        if pull is not None:
            return _success(pull)
        text = f"Branch {run.branch} is pushed, but no pull request could be opened: {error}"
        return Published(Ending(Outcome.FAILED, "PullRequestFailed", text), pushed=True)

    async def _opened(self, assignment: Assignment) -> PullRequest | None:
        """Return the pull request that is open all the same, so that nobody misses it."""
        try:
            way = await self._way(assignment)
        except CallError:
            return None
        return _shown(way.known) if way is not None and way.known is not None else None

    async def _known_way(self, assignment: Assignment) -> _Way | None:
        """Return what was found while the work was collected, once, or look beside the push."""
        run_id, way = self._ways.pop(assignment.key, ("", None))
        return (
            way if way is not None and run_id == assignment.run.id else await self._way(assignment)
        )

    async def _way(self, assignment: Assignment, view: RepositoryView | None = None) -> _Way | None:
        """Return where the pull request goes, and the one that is open; None: it goes nowhere."""
        github, repository = self._outside.github, assignment.repository
        if github is None:
            return None
        async with ahead(github.open_pull(repository, assignment.run.branch or "")) as known:
            view = view or await github.repository(repository)
            if not is_own(assignment.resource.spec.repository or RepositorySource(), view):
                return None
            return _Way(assignment.publish.base or view.default_branch, await known)

    async def rescue(self, assignment: Assignment) -> Rescued:
        """Save the work of a run that ended badly; its agent is dead by then."""
        save, deleting = assignment.recovery.save_work, assignment.deleting
        kind = way_to_save(save, publishes=assignment.publishes, deleting=deleting)
        try:
            work = await self._collector.work(assignment, save=kind)
        except CollectError as error:
            if error.code == SURVIVES:
                raise Invalid(str(error), code=error.code) from error
            failure = Invalid(f"it could not be collected: {error.code}", code=error.code)
            return Rescued(await self._harvest(assignment, None), failure=failure)
        if work.leaks:
            kind = way_to_save(save, publishes=False, deleting=deleting)
        harvest = await self._harvest(assignment, work)
        try:
            return Rescued(harvest, await self._saver.save(assignment, work, kind))
        except CallError as error:
            return Rescued(harvest, failure=error)

    async def _harvest(self, assignment: Assignment, work: Work | None) -> Harvest | None:
        """Return what the status is to say of the work of a run that is over, once."""
        run = assignment.run
        if run.outcome is None or run.change_totals is not None:
            return None
        return await self._collector.harvest(assignment, work)


async def _pull(assignment: Assignment, github: GitHub, way: _Way) -> PullView:
    repository, known = assignment.repository, way.known
    order = pull_order(assignment.resource, assignment.status, way.base)
    if known is None:
        return await github.create_pull(repository, order)
    texts = revised(order, known.title, known.body)
    return await github.update_pull(repository, known.number, title=texts.title, body=texts.body)


def _ref(assignment: Assignment) -> str:
    return f"refs/heads/{assignment.run.branch}"


def _success(pull: PullRequest) -> Published:
    return Published(Ending(Outcome.SUCCEEDED, None, f"See {pull.url}."), pushed=True, pull=pull)


def _shown(pull: PullView) -> PullRequest:
    return PullRequest(number=pull.number, url=pull.url, state=pull.state)
