"""A GitHub of one issue and a resource, without I/O: what happened, and what deliveries make of it.

The desk's loop is played here in its simplest form: nobody else writes in between.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from issuesandbox.domain.webhook.commands import Command, Verb
from issuesandbox.domain.webhook.hints import CommentHint, Happening, Ignored, IssueHint
from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.domain.webhook.judge import asks_for, event_trigger, judge_command, judge_issue
from issuesandbox.domain.webhook.live import Live
from issuesandbox.domain.webhook.missed import Entry, may_have_missed, missed, place_of
from issuesandbox.domain.webhook.orders import Order, Refusal
from issuesandbox.domain.webhook.plan import Change, Nothing, Question, plan, plan_new
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.domain.webhook.stamps import Stamp

RULES = Rules()
OWNER = Person("owner", standing="OWNER")
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Model:
    """The issue, its history, its deliveries, and the resource."""

    now: datetime = START
    issue: IssueFacts = field(init=False)
    history: list[Entry] = field(default_factory=list)
    deliveries: list[IssueHint | CommentHint] = field(default_factory=list)
    live: Live | None = None
    triggers: list[str | None] = field(default_factory=list)
    next_id: int = 100

    def __post_init__(self) -> None:
        self.issue = IssueFacts("o/r", 1, 7, "title", "", OWNER, self.now, created_at=self.now)
        self._tell(Happening.OPENED)

    def edit(self, body: str) -> None:
        self._change(body=body)
        self._tell(Happening.EDITED)

    def label(self, name: str) -> None:
        self._change(labels=(*self.issue.labels, name))
        self._remember("labeled", name)
        self._tell(Happening.LABELED, name)

    def unlabel(self, name: str) -> None:
        self._change(labels=tuple(each for each in self.issue.labels if each != name))
        self._remember("unlabeled", name)
        self._tell(Happening.UNLABELED, name)

    def close(self) -> None:
        self._change(is_open=False)
        self._remember("closed")
        self._tell(Happening.CLOSED)

    def reopen(self) -> None:
        self._change(is_open=True)
        self._remember("reopened")
        self._tell(Happening.REOPENED)

    def comment(self, verb: Verb) -> None:
        self._change()
        self.next_id += 1
        hint = CommentHint(self.issue, self.next_id, OWNER, f"/{verb}", self.now)
        self.deliveries.append(hint)

    def wait(self) -> None:
        self.now += timedelta(seconds=1)

    def _change(self, **changes: object) -> None:
        self.issue = replace(self.issue, updated_at=self.now, **changes)

    def _remember(self, event: str, label: str = "") -> None:
        self.next_id += 1
        self.history.append(Entry(Stamp(self.now, self.next_id), event, "owner", label))

    def _tell(self, happening: Happening, subject: str = "") -> None:
        self.deliveries.append(IssueHint(happening, self.issue, OWNER, subject))

    def receive(self, hint: IssueHint | CommentHint) -> None:
        """Let the adapter do what it does with a delivery."""
        if isinstance(hint, CommentHint):
            command = Command(Verb(hint.body[1:]))
            judged = judge_command(command, hint, RULES, True)
        else:
            permitted = True if asks_for(hint, RULES) else None
            judged = judge_issue(hint, RULES, permitted)
        if isinstance(judged, Order):
            self._carry_out(judged)
        else:
            assert isinstance(judged, Ignored | Refusal)

    def catch_up(self) -> None:
        hints: list[tuple[Stamp, IssueHint | CommentHint]] = [
            (Stamp(each.at, each.comment_id), replace(each, issue=self.issue, is_found=True))
            for each in self.deliveries
            if isinstance(each, CommentHint)
        ]
        if may_have_missed(self.issue, self.live):
            for each in missed(self.issue, self.live, self.history, RULES, START, OWNER):
                hints.append((place_of(each), each))
        for _, hint in sorted(hints, key=lambda each: each[0]):
            self.receive(hint)

    def _carry_out(self, order: Order) -> None:
        for _ in range(5):
            change = plan_new(order) if self.live is None else plan(self.live, order)
            if isinstance(change, Nothing):
                return
            if isinstance(change, Change):
                self._write(change)
                return
            order = self._answered(order, change)
        raise AssertionError(f"no end of questions about {order}")

    def _answered(self, order: Order, question: Question) -> Order:
        if question is Question.ISSUE:
            now = self.issue
            return replace(order, now=now, issue=now if order.issue is not None else None)
        if question is Question.PAST:
            return replace(order, was_done=False)
        assert order.happening is not None
        entry = max(
            each.stamp
            for each in self.history
            if each.event == order.happening and each.stamp.at <= order.stamp.at
        )
        return replace(order, trigger=event_trigger(order.happening, entry.id), stamp=entry)

    def _write(self, change: Change) -> None:
        live = self.live or Live("ns", "name", "uid", "1", "", "o/r", 1, is_ours=True, has_run=True)
        if change.trigger != live.trigger:
            self.triggers.append(change.trigger)
        self.live = replace(
            live,
            is_running=change.is_running,
            trigger=change.trigger,
            text=change.text,
            present=change.issue.trigger if change.issue else live.present,
            labels=change.issue.kept_labels if change.issue else live.labels,
            issue_time=change.issue_time,
            order=change.order,
            stopped_for=change.stopped_for,
        )


def shuffled(model: Model, chance: random.Random, loss: float) -> list[IssueHint | CommentHint]:
    kept = [each for each in model.deliveries if chance.random() >= loss] * 3
    chance.shuffle(kept)
    return kept
