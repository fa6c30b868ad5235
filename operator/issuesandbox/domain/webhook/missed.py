"""What was missed: from an issue as it is, its history and its resource to the hints that got lost.

Pure. What was handled must not be found again, so every hint carries the same trigger and the
same place in time as the delivery that got lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from issuesandbox.domain.webhook.hints import Happening, IssueHint
from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.domain.webhook.live import Live
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.domain.webhook.stamps import Stamp

_LAST = 2**63


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an issue's history."""

    stamp: Stamp
    event: str
    actor: str
    subject: str = ""
    """The label or the assignee that it is about."""

    def by(self, author: Person) -> Person:
        """Return who did it; of the author alone it is known what they are."""
        if self.actor.lower() == author.login.lower():
            return author
        return Person(self.actor, self.actor.endswith("[bot]"))


def may_have_missed(issue: IssueFacts, live: Live | None) -> bool:
    """Tell whether something may have been missed since the last order, from the issue alone."""
    if live is None:
        return issue.is_open
    return live.order is None or issue.updated_at >= live.order.at


def missed(
    issue: IssueFacts, live: Live | None, history: Sequence[Entry], rules: Rules
) -> list[IssueHint]:
    """Return what was missed, in no order.

    Whether a resource that is not there ever was is not known here: what was done on one that is
    gone is found as well.
    """
    if not issue.is_open:
        closed = live is not None and live.is_running
        return [IssueHint(Happening.CLOSED, issue, issue.author)] if closed else []
    since = live.order.at if live is not None and live.order else None
    recent = [
        each
        for each in sorted(history, key=lambda each: each.stamp)
        if since is None or each.stamp.at >= since
    ]
    found = [*_begun(issue, recent, rules), *_withdrawn(issue, live, recent, rules)]
    if live is not None and live.text not in (None, issue.trigger):
        found.append(IssueHint(Happening.EDITED, issue, issue.author))
    reopened = any(each.happening is Happening.REOPENED for each in found)
    if live is None and not reopened:
        found.append(IssueHint(Happening.OPENED, issue, issue.author, at=issue.created_at))
    return found


def place_of(hint: IssueHint) -> Stamp:
    """Return where something that was missed belongs among all that was.

    When a text was edited nobody knows: an edit comes last, since whatever begins before reads
    the new text already.
    """
    if hint.happening is Happening.EDITED:
        return Stamp(hint.issue.updated_at, _LAST)
    return hint.event or Stamp(hint.at or hint.issue.updated_at)


def _begun(issue: IssueFacts, history: Sequence[Entry], rules: Rules) -> list[IssueHint]:
    """Return the last entry that began something which still holds."""
    found = []
    labels, assignees = map(str.lower, issue.labels), map(str.lower, issue.assignees)
    asks: dict[str, set[str]] = {
        Happening.LABELED: {*labels} & {rules.label.lower()},
        Happening.ASSIGNED: {*assignees} & {each.lower() for each in rules.assignees},
    }
    for entry in history:
        actor = entry.by(issue.author)
        if entry.event == Happening.REOPENED:
            found.append(IssueHint(Happening.REOPENED, issue, actor, event=entry.stamp))
        elif entry.subject.lower() in asks.get(entry.event, ()):
            happening = Happening(entry.event)
            found.append(IssueHint(happening, issue, actor, entry.subject, event=entry.stamp))
    return found[-1:]


def _withdrawn(
    issue: IssueFacts, live: Live | None, history: Sequence[Entry], rules: Rules
) -> list[IssueHint]:
    """Return that the label was taken off, if it was and nothing was ordered since."""
    label = rules.label.lower()
    if live is None or not live.is_running or label in map(str.lower, issue.labels):
        return []
    return [
        IssueHint(
            Happening.UNLABELED, issue, entry.by(issue.author), entry.subject, at=entry.stamp.at
        )
        for entry in history
        if entry.event == Happening.UNLABELED and entry.subject.lower() == label
    ][-1:]
