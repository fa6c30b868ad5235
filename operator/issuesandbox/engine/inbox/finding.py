"""Finds what deliveries did not bring: looks through one repository and says what happened there.

Knows nothing of when it is looked and of what becomes of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from issuesandbox.clock import Clock
from issuesandbox.domain.webhook.hints import (
    CommentHint,
    GoneHint,
    Happening,
    Hint,
    PullHint,
)
from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.domain.webhook.judge import listens_to
from issuesandbox.domain.webhook.missed import (
    Edit,
    Entry,
    is_rewritten,
    may_have_missed,
    missed,
    place_of,
    writer,
)
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.domain.webhook.stamps import Stamp
from issuesandbox.engine.inbox.facts import author_of, facts_of
from issuesandbox.engine.inbox.index import IssueIndex
from issuesandbox.ports.errors import CallError, Denied, Invalid, NotFound
from issuesandbox.ports.github import CommentView, Forge, GitHub, IssueView
from issuesandbox.ports.inbox import Records

Found = list[tuple[Stamp, Hint]]
Tell = Callable[[str, CallError], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the catch-up looks."""

    github: GitHub
    forge: Forge
    index: IssueIndex
    records: Records
    clock: Clock


def is_final(error: CallError) -> bool:
    """Tell whether asking again cannot help; a credential that is refused may be a new one soon."""
    return isinstance(error, Invalid | Denied | NotFound) and error.code != "Unauthorized"


class Finder:
    """Looks through repositories; `tell` hears of what GitHub will not show."""

    def __init__(self, reach: Reach, tell: Tell) -> None:
        self._reach = reach
        self._tell = tell

    async def look_through(self, name: str, rules: Rules, since: datetime) -> Found:
        """Return what happened in a repository since then, in its order."""
        forge, found = self._reach.forge, Found()
        issues = {each.number: each async for each in forge.issues_since(name, since)}
        async for comment in forge.comments_since(name, since):
            if _is_as_said(comment, since):
                found += await self._each(name, self._said(name, comment, issues, rules))
        for issue in issues.values():
            found += await self._each(name, self._happened(name, issue, rules, since))
        for live in self._reach.index.busy(name):
            if live.number not in issues:
                found += await self._each(name, self._gone(name, live.number))
        return sorted(found, key=lambda each: each[0])

    async def _each(self, name: str, looking: Awaitable[Found]) -> Found:
        """Look at one thing; that it is refused keeps the others from nothing."""
        try:
            return await looking
        except CallError as error:
            if not is_final(error):
                raise
            await self._tell(name, error)
            return []

    async def _said(
        self, name: str, comment: CommentView, issues: dict[int, IssueView], rules: Rules
    ) -> Found:
        at = comment.created_at
        if at is None or listens_to(comment.body, rules) is None:
            return []
        try:
            view = issues.get(comment.number) or await self._reach.github.issue(
                name, comment.number
            )
        except NotFound:
            return []
        return [(Stamp(at, comment.id), _hint_of(comment, view, at))]

    async def _happened(self, name: str, view: IssueView, rules: Rules, since: datetime) -> Found:
        if view.is_pull_request:
            return await self._pull(name, view)
        issue, live = facts_of(view), self._reach.index.owner(name, view.number)
        if not may_have_missed(issue, live):
            return []
        history = await self._history(name, issue.number)
        by: Person | None = issue.author
        if is_rewritten(issue, live, since):
            by = await self._writer(name, issue, history)
        return [(place_of(each), each) for each in missed(issue, live, history, rules, since, by)]

    async def _writer(self, name: str, issue: IssueFacts, history: list[Entry]) -> Person | None:
        try:
            seen = await self._reach.forge.last_edit(name, issue.number)
        except CallError as error:
            if not is_final(error):
                raise
            await self._tell(name, error)
            return None
        edit = None if seen is None else Edit(seen.at, seen.editor, seen.is_bot)
        return writer(issue, history, edit)

    async def _pull(self, name: str, view: IssueView) -> Found:
        live = self._reach.index.owner_of_pull(name, view.number)
        if live is None or not live.is_running or view.state == "open":
            return []
        history = await self._history(name, view.number)
        closed = [each for each in history if each.event == Happening.CLOSED]
        if not closed:
            return []
        at = closed[-1].stamp.at
        return [(Stamp(at), PullHint(name, view.number, False, at, Person(closed[-1].actor)))]

    async def _gone(self, name: str, number: int) -> Found:
        """Look after an issue that nothing was heard of: it may be deleted or transferred."""
        try:
            await self._reach.github.issue(name, number)
        except NotFound:
            # A repository that we may not see would answer the same.
            await self._reach.github.repository(name)
            now = self._reach.clock.now()
            return [(Stamp(now), GoneHint(name, number, now))]
        return []

    async def _history(self, name: str, number: int) -> list[Entry]:
        try:
            listed = await self._reach.forge.issue_events(name, number)
        except NotFound:
            return []
        return [
            Entry(Stamp(each.created_at, each.id), each.event, each.actor, each.subject)
            for each in listed
        ]


def _is_as_said(comment: CommentView, since: datetime) -> bool:
    """Tell whether a comment is new, and its words still those of its author.

    Of an edited one nobody knows who wrote what it says now, nor whether what it said before was
    obeyed.
    """
    at = comment.created_at
    return at is not None and at >= since and comment.updated_at in (None, at)


def _hint_of(comment: CommentView, issue: IssueView, at: datetime) -> CommentHint:
    return CommentHint(
        issue=facts_of(issue),
        comment_id=comment.id,
        author=author_of(comment),
        body=comment.body,
        at=at,
        on_pull=issue.is_pull_request,
        is_found=True,
    )
