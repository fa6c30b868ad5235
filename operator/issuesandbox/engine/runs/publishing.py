"""Publishing: the operator itself pushes the commit, then opens or updates the pull request.

Called only after the push was decided and written down. The remote compares the branch with the
tip that was recorded before the agent started, so a repeated push does no harm, and a branch
that somebody else moved is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DesiredState, RepositorySource
from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.status_run import Outcome, PullRequest, SavedWork
from issuesandbox.domain.collection import CollectError
from issuesandbox.domain.publication import pull_order, revised, wip_branch
from issuesandbox.domain.runs.chapters import Ending
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.collecting import Collector, Work
from issuesandbox.engine.runs.following import SURVIVES
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.sources import (
    FINAL,
    Hopeless,
    given_credential,
    is_own,
    reason_of,
)
from issuesandbox.engine.runs.steps import Published, Rescued
from issuesandbox.ports.errors import CallError, Denied, Invalid, NotFound, Unavailable
from issuesandbox.ports.github import GitHub, PullView, Token
from issuesandbox.ports.remote import ZERO, Pushed, PushOrder, PushVerdict
from issuesandbox.ports.resources import ResourceKey

_TRIES = 4
T = TypeVar("T")


class Publisher:
    """Publishes the work of all runs."""

    def __init__(self, outside: Outside, collector: Collector) -> None:
        self._outside = outside
        self._collector = collector
        self._rights: dict[ResourceKey, tuple[str, str, Token]] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop the right to push for a resource."""
        self._rights.pop(key, None)

    async def authorize(self, assignment: Assignment) -> Ending | None:
        """Get the right to push, before the push is decided; an `Ending` if there is none."""
        try:
            url, token = await self._destination(assignment)
        except FINAL as error:
            text = f"The work cannot be pushed: {error}"
            return Ending(Outcome.FAILED, reason_of(error, "PublishDenied"), text)
        self._rights[assignment.key] = (assignment.run.id, url, token)
        return None

    async def publish(self, assignment: Assignment) -> Published:
        """Send the push that was decided, then open or update the pull request."""
        run = assignment.run
        assert run.publish is not None, "only a decided push is sent"
        commit, ref = run.publish.commit, f"refs/heads/{run.branch}"
        url, token = await self._right(assignment)
        if (await self._outside.remote.refs(url, token)).get(ref) != commit:
            work = await self._work(assignment, commit)
            self._outside.check_charge(assignment)
            order = PushOrder(ref, run.publish.old, commit, work.pack)
            answer = await self._outside.remote.push(url, token, order)
            if answer.verdict is not PushVerdict.ACCEPTED:
                return await self._refused(assignment, work, answer)
        if await self._was_stopped(assignment):
            text = f"The stop came after the push was decided; branch {run.branch} has the work."
            ending = Ending(Outcome.CANCELLED, "TooLateToStop", text)
            return Published(ending, pushed=True, pull=await self._opened(assignment))
        return await self._propose(assignment)

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
        return await self._destination(assignment)

    async def _destination(self, assignment: Assignment) -> tuple[str, Token]:
        given = assignment.resource.spec.repository or RepositorySource()
        github = self._outside.github
        if github is not None:
            view = await github.repository(assignment.repository)
            if is_own(given, view):
                return view.clone_url, await github.write_token(assignment.repository)
        try:
            credential = await given_credential(assignment, given, self._outside)
        except Hopeless as error:
            raise Denied(str(error), code=error.ending.reason) from None
        if given.clone_url is None or credential is None:
            raise Denied("there are no credentials to push with")
        return given.clone_url, credential

    async def _refused(self, assignment: Assignment, work: Work, answer: Pushed) -> Published:
        saved = await self._save(assignment, work, SaveWork.BRANCH)
        where = f" The work is on branch {saved.ref}." if saved is not None else ""
        if answer.verdict is PushVerdict.MOVED:
            text = f"Somebody else moved branch {assignment.run.branch} during the run.{where}"
            return Published(Ending(Outcome.FAILED, "BranchMoved", text), saved=saved)
        text = f"GitHub refused the push: {answer.reason}.{where}"
        return Published(Ending(Outcome.FAILED, "PublishFailed", text), saved=saved)

    async def _was_stopped(self, assignment: Assignment) -> bool:
        try:
            body = await self._outside.resources.get(assignment.key)
        except NotFound:
            return True
        fresh = IssueSandbox.model_validate(body)
        deleting = fresh.metadata.deletion_timestamp is not None
        return deleting or fresh.spec.desired_state is DesiredState.STOPPED

    async def _propose(self, assignment: Assignment) -> Published:
        github, run = self._outside.github, assignment.run
        if github is None:
            text = f"Branch {run.branch} is pushed; there are no credentials for a pull request."
            return Published(Ending(Outcome.SUCCEEDED, "Pushed", text), pushed=True)
        try:
            pull = await _patiently(lambda: self._pull(assignment, github))
        except CallError as error:
            text = f"Branch {run.branch} is pushed, but no pull request could be opened: {error}"
            return Published(Ending(Outcome.FAILED, "PullRequestFailed", text), pushed=True)
        ending = Ending(Outcome.SUCCEEDED, None, f"See {pull.url}.")
        return Published(ending, pushed=True, pull=_shown(pull))

    async def _pull(self, assignment: Assignment, github: GitHub) -> PullView:
        repository, run = assignment.repository, assignment.run
        base = assignment.publish.base or (await github.repository(repository)).default_branch
        order = pull_order(assignment.resource, assignment.status, base)
        known = await github.open_pull(repository, run.branch or "")
        self._outside.check_charge(assignment)
        if known is None:
            return await github.create_pull(repository, order)
        texts = revised(order, known.title, known.body)
        return await github.update_pull(
            repository, known.number, title=texts.title, body=texts.body
        )

    async def rescue(self, assignment: Assignment) -> Rescued:
        """Save the work of a run that ended badly; its agent is dead by then."""
        save = assignment.recovery.save_work
        try:
            work = await self._collector.work(assignment, save=save)
        except CollectError as error:
            if error.code == SURVIVES:
                raise Invalid(str(error), code=error.code) from error
            return Rescued(await self._collector.harvest(assignment, None))
        harvest = await self._collector.harvest(assignment, work)
        return Rescued(harvest, await self._save(assignment, work, save))

    async def _save(self, assignment: Assignment, work: Work, save: SaveWork) -> SavedWork | None:
        """Put work that is not published where people find it; failing that fails nothing."""
        commit, now = work.collection.commit, self._outside.clock.now()
        if commit is None or save is SaveWork.OFF:
            return None
        issue, run_id = assignment.resource.spec.issue, assignment.run.id
        try:
            self._outside.check_charge(assignment)
            if save is SaveWork.PATCH:
                name = f"{assignment.key.name[:200]}-{run_id}-patch"
                await self._outside.ledgers.put(assignment.key, name, {"patch": work.patch or ""})
                return SavedWork(kind=save, ref=name, at=now)
            name = wip_branch(issue.number, run_id)
            order = PushOrder(f"refs/heads/{name}", ZERO, commit, work.pack)
            answer = await _patiently(lambda: self._send(assignment, order))
        except CallError:
            return None
        accepted = answer.verdict is PushVerdict.ACCEPTED
        return SavedWork(kind=save, ref=name, at=now) if accepted else None

    async def _send(self, assignment: Assignment, order: PushOrder) -> Pushed:
        url, token = await self._destination(assignment)
        return await self._outside.remote.push(url, token, order)


async def _patiently(act: Callable[[], Awaitable[T]]) -> T:
    """Do what may fail for a moment; raise what does not pass."""
    for attempt in range(_TRIES - 1):
        try:
            return await act()
        except FINAL:
            raise
        except CallError as error:
            await asyncio.sleep(min(error.retry_after or 2.0**attempt, 10.0))
    return await act()


def _shown(pull: PullView) -> PullRequest:
    return PullRequest(number=pull.number, url=pull.url, state=pull.state)
