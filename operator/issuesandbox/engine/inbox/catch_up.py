"""Looks for what deliveries did not bring: GitHub sends each event once, and many get lost.

A pass lists what changed since the last one and hands it to the same reception as deliveries, so
that what was handled is not handled again. Deliveries that GitHub knows to have failed are asked
for once more. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from issuesandbox.clock import Clock
from issuesandbox.domain.webhook.hints import (
    CommentHint,
    GoneHint,
    Happening,
    Hint,
    IssueHint,
    PullHint,
)
from issuesandbox.domain.webhook.issue import Person
from issuesandbox.domain.webhook.judge import listens_to
from issuesandbox.domain.webhook.missed import Entry, may_have_missed, missed, place_of
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.domain.webhook.stamps import Stamp
from issuesandbox.engine.inbox.cursor import Cursor, read_cursor, write_cursor
from issuesandbox.engine.inbox.facts import author_of, facts_of
from issuesandbox.engine.inbox.index import IssueIndex
from issuesandbox.engine.inbox.reception import Reception, Result
from issuesandbox.ports.errors import CallError, Conflict, NotFound, Throttled, Unavailable
from issuesandbox.ports.github import CommentView, Delivery, Forge, GitHub, IssueView
from issuesandbox.ports.inbox import Records

# Clocks differ, and GitHub's lists lag behind its events.
_OVERLAP = timedelta(minutes=2)
_RETRY = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the catch-up looks."""

    github: GitHub
    forge: Forge
    index: IssueIndex
    records: Records
    clock: Clock


class CatchUp:
    """One pass every so often, by one replica at a time."""

    def __init__(self, reach: Reach, reception: Reception, name: str, every: timedelta) -> None:
        self._reach = reach
        self._reception = reception
        self._name = name
        self._every = every.total_seconds()
        self._hurried = asyncio.Event()
        self.found = 0
        self.failures = 0
        self.last_success = 0.0
        """When a pass last went through, in seconds since 1970."""

    def hurry(self) -> None:
        """Look now: something changed that no single event tells."""
        self._hurried.set()

    async def run(self, may_act: Callable[[], bool]) -> None:
        """Take passes until cancelled, while this replica is the one to do so."""
        while True:
            rest = 1.0
            # Before the pass: what happens during it may be behind where it looked.
            self._hurried.clear()
            if may_act() and self._reach.index.is_complete():
                rest = self._every if await self.look() else min(self._every, _RETRY)
            try:
                async with asyncio.timeout(rest):
                    await self._hurried.wait()
            except TimeoutError:
                continue

    async def look(self) -> bool:
        """Take one pass; tell whether it went through."""
        began = self._reach.clock.now()
        try:
            cursor = await read_cursor(self._reach.records, self._name)
            complete = await self._repositories(cursor, began)
            complete = await self._deliveries(cursor, began) and complete
            await write_cursor(self._reach.records, self._name, cursor)
        except Conflict:
            return True  # another replica was faster, and did the same
        except CallError as error:
            return self._failed("catch-up", error)
        if complete:
            self.last_success = began.timestamp()
            logger.info("catch-up done", extra={"found": self.found})
        return complete

    async def _repositories(self, cursor: Cursor, began: datetime) -> bool:
        complete = True
        for name in [each.full_name async for each in self._reach.forge.repositories()]:
            rules = self._reception.rules_for(name)
            if rules is None:
                continue
            try:
                whole = await self._repository(name, rules, cursor.since(name, began) - _OVERLAP)
            except CallError as error:
                whole = self._failed(name, error)
            if whole:
                cursor.advance(name, began)
            complete = complete and whole
        if complete:
            cursor.passed = began
        return complete

    async def _repository(self, name: str, rules: Rules, since: datetime) -> bool:
        """Look through one repository; tell whether all that was found could be handled."""
        forge = self._reach.forge
        issues = {each.number: each async for each in forge.issues_since(name, since)}
        hints: list[tuple[Stamp, Hint]] = []
        async for comment in forge.comments_since(name, since):
            if comment.created_at is not None and comment.created_at >= since:
                hints += await self._said(name, comment, issues, rules)
        for issue in issues.values():
            hints += await self._happened(name, issue, rules)
        for live in self._reach.index.busy(name):
            if live.number not in issues:
                hints += await self._gone(name, live.number)
        whole = True
        for _, hint in sorted(hints, key=lambda each: each[0]):
            try:
                await self._handle(name, hint)
            except (Unavailable, Throttled):
                raise  # the next one would fare no better
            except CallError as error:
                # One that cannot be handled must not keep the others from it.
                whole = self._failed(name, error)
        return whole

    async def _handle(self, name: str, hint: Hint) -> None:
        answer = await self._reception.receive(hint)
        if answer.result is Result.DONE and answer.reason in ("created", "changed"):
            self.found += 1
            extra = {"repository": name, "resource": answer.resource, "did": answer.reason}
            logger.info("missed event found", extra=extra)

    async def _said(
        self, name: str, comment: CommentView, issues: dict[int, IssueView], rules: Rules
    ) -> list[tuple[Stamp, CommentHint]]:
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

    async def _happened(
        self, name: str, issue: IssueView, rules: Rules
    ) -> list[tuple[Stamp, IssueHint | PullHint]]:
        if issue.is_pull_request:
            return await self._pull(name, issue)
        facts, live = facts_of(issue), self._reach.index.owner(name, issue.number)
        if not may_have_missed(facts, live):
            return []
        history = await self._history(name, issue.number)
        return [(place_of(each), each) for each in missed(facts, live, history, rules)]

    async def _pull(self, name: str, issue: IssueView) -> list[tuple[Stamp, IssueHint | PullHint]]:
        live = self._reach.index.owner_of_pull(name, issue.number)
        if live is None or not live.is_running or issue.state == "open":
            return []
        closed = [
            each
            for each in await self._history(name, issue.number)
            if each.event == Happening.CLOSED
        ]
        if not closed:
            return []
        at = closed[-1].stamp.at
        hint = PullHint(name, issue.number, False, at, Person(closed[-1].actor))
        return [(Stamp(at), hint)]

    async def _gone(self, name: str, number: int) -> list[tuple[Stamp, GoneHint]]:
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

    async def _deliveries(self, cursor: Cursor, began: datetime) -> bool:
        since = (cursor.deliveries or began) - _OVERLAP
        try:
            async for failed in self._reach.forge.failed_deliveries(since):
                await self._again(failed)
        except CallError as error:
            return self._failed("deliveries", error)
        cursor.deliveries = began
        return True

    async def _again(self, failed: Delivery) -> None:
        try:
            await self._reach.forge.redeliver(failed.id)
        except NotFound:
            return  # GitHub keeps deliveries for some days only
        extra = {"delivery": failed.guid, "event": failed.event}
        logger.info("delivery asked for again", extra=extra)

    def _failed(self, what: str, error: CallError) -> bool:
        self.failures += 1
        logger.warning("catch-up failed", extra={"what": what, "error": str(error)})
        return False


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
