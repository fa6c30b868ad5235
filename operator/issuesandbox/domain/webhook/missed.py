"""What was missed: from an issue as it is, its history and its resource to the hints that got lost.

Pure. What was handled must not be found again, so every hint carries the same trigger and the
same place in time as the delivery that got lost. What is older than the last look was seen by it,
so that a word under an old issue begins nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from issuesandbox.domain.webhook.hints import Happening, IssueHint
from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.domain.webhook.judge import SLACK
from issuesandbox.domain.webhook.live import Live
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.domain.webhook.stamps import Stamp

_LAST = 2**63
_RENAMED = "renamed"


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


@dataclass(frozen=True, slots=True)
class Edit:
    """The last change of an issue's body; the history does not list it."""

    at: datetime
    editor: str
    is_bot: bool = False


def may_have_missed(issue: IssueFacts, live: Live | None) -> bool:
    """Tell whether something may have been missed since the last order, from the issue alone."""
    if live is None:
        return issue.is_open
    return live.order is None or issue.updated_at >= live.order.at


def is_rewritten(issue: IssueFacts, live: Live | None, since: datetime) -> bool:
    """Tell whether it matters who wrote the present text last."""
    if live is not None:
        return issue.is_open and live.text not in (None, issue.trigger)
    made = issue.created_at
    return _is_new(issue, since) and made is not None and issue.updated_at > made + SLACK


def writer(issue: IssueFacts, history: Sequence[Entry], edit: Edit | None) -> Person:
    """Return who wrote the present text last: the title or the body."""
    found = [(each.stamp.at, each.by(issue.author)) for each in history if each.event == _RENAMED]
    if edit is not None:
        is_own = edit.editor.lower() == issue.author.login.lower()
        found.append((edit.at, issue.author if is_own else Person(edit.editor, edit.is_bot)))
    return max(found, key=lambda each: each[0])[1] if found else issue.author


def missed(
    issue: IssueFacts,
    live: Live | None,
    history: Sequence[Entry],
    rules: Rules,
    since: datetime,
    by: Person | None,
) -> list[IssueHint]:
    """Return what was missed since then, in no order; the present text is `by` somebody.

    None says that nobody knows whose it is: then it begins nothing. Whether a resource that is
    not there ever was is not known here: what was done on one that is gone is found as well.
    """
    if not issue.is_open:
        closed = live is not None and live.is_running
        return [IssueHint(Happening.CLOSED, issue, issue.author)] if closed else []
    floor = live.order.at if live is not None and live.order else since
    recent = sorted(
        (each for each in history if each.stamp.at >= floor), key=lambda each: each.stamp
    )
    found = [*_begun(issue, recent, rules), *_withdrawn(issue, live, recent, rules)]
    if by is None:
        return found
    if live is not None and live.text not in (None, issue.trigger):
        found.append(IssueHint(Happening.EDITED, issue, by))
    reopened = any(each.happening is Happening.REOPENED for each in found)
    if live is None and _is_new(issue, since) and not reopened:
        found.append(IssueHint(Happening.OPENED, issue, by, at=issue.created_at))
    return found


def _is_new(issue: IssueFacts, since: datetime) -> bool:
    return issue.is_open and issue.created_at is not None and issue.created_at >= since


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
