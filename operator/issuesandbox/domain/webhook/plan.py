"""What an order changes on a resource as it is: nothing, something, or first a question.

Pure, and so the same from every replica. Two orders may come in any order, repeated or at once:
the later one wins. GitHub's times have whole seconds, so where two events of one second disagree
the issue itself is read once more; it is the truth, and events are only hints.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from issuesandbox.domain.webhook.hints import Happening
from issuesandbox.domain.webhook.issue import IssueFacts
from issuesandbox.domain.webhook.live import Live
from issuesandbox.domain.webhook.orders import Act, Order, StopReason
from issuesandbox.domain.webhook.stamps import Stamp, read_moment

# By so much the clocks of GitHub and of the API server may differ.
SKEW = timedelta(seconds=30)

# They ask that there be a run, and for no other one where there is.
_WISHES = (Happening.LABELED, Happening.ASSIGNED)


class Question(StrEnum):
    """What must be known before the order can be carried out."""

    ISSUE = "the issue as it is now"
    EVENT = "the entry in its history"
    PAST = "whether it was carried out before"


class Nothing(Struct, frozen=True):
    """Nothing to change, and why."""

    reason: str


class Change(Struct, frozen=True):
    """What the resource shall say; the issue's text stays where `issue` is None."""

    is_running: bool
    trigger: str | None
    prompt: str | None = None
    keeps_prompt: bool = True
    issue: IssueFacts | None = None
    issue_time: datetime | None = None
    text: str | None = None
    """The trigger that the text last acted upon stands for."""
    order: Stamp | None = None
    stopped_for: StopReason | None = None


def plan_new(order: Order) -> Change | Question | Nothing:
    """Return what a resource that does not exist yet shall say."""
    if order.was_done:
        return Nothing("it was done on a resource that is gone")
    is_asked = order.act is Act.START or order.reason is StopReason.COMMAND
    if order.is_late and is_asked and order.was_done is None:
        return Question.PAST
    if order.act is not Act.START or not order.creates or order.issue is None:
        return Nothing("there is no resource for it")
    if order.trigger is None and order.happening is Happening.REOPENED:
        return Question.EVENT
    # The first run is that of the issue's text; only another one needs a name of its own.
    own = order.trigger if order.happening not in _WISHES else None
    return Change(
        is_running=True,
        trigger=own or order.issue.trigger,
        prompt=order.prompt,
        keeps_prompt=False,
        issue=order.issue,
        issue_time=order.issue.updated_at,
        text=order.issue.trigger,
        order=order.stamp,
    )


def plan(live: Live, order: Order) -> Change | Question | Nothing:
    """Return what an order changes on a resource."""
    text = _text(live, order)
    if isinstance(text, Question):
        return text
    act = _act(live, order)
    if isinstance(act, Question):
        return act
    if act is None and text is None:
        return Nothing("this is known already")
    change = act or as_it_is(live)
    if text is not None:
        change = replace(change, issue=text, issue_time=text.updated_at)
    if change == as_it_is(live):
        return Nothing("this is known already")
    return change


def is_newer(live: Live, stamp: Stamp) -> bool:
    """Tell whether a resource, as it is now, is younger than an order to delete it."""
    if live.order is not None:
        return stamp < live.order
    made = read_moment(live.created)
    return made is not None and stamp.at < made - SKEW


def as_it_is(live: Live) -> Change:
    """Return the change that changes nothing."""
    return Change(
        is_running=live.is_running,
        trigger=live.trigger,
        issue_time=live.issue_time,
        text=live.text,
        order=live.order,
        stopped_for=live.stopped_for,
    )


def _text(live: Live, order: Order) -> IssueFacts | Question | None:
    """Return the text to take over, if it is newer than the one there."""
    issue = order.issue
    if issue is None or (live.issue_time and issue.updated_at < live.issue_time):
        return None
    if live.issue_time is None or issue.updated_at > live.issue_time:
        return issue
    if issue.trigger == live.present and issue.kept_labels == live.labels:
        return None
    return Question.ISSUE if order.now is None else issue


def _act(live: Live, order: Order) -> Change | Question | None:
    """Return the resource after the act, if the act is newer than the last one."""
    # Whatever was ordered since: an issue that is gone does not come back.
    is_over = order.reason is StopReason.GONE
    if order.act is Act.REFRESH or (_is_late(live, order.stamp) and not is_over):
        return None
    if _is_superseded(live, order):
        return _noted(live, order)
    if order.act is Act.STOP:
        return _stopped(live, order)
    if order.trigger is not None and order.happening not in _WISHES:
        return _started(live, order, order.trigger)
    if order.happening is Happening.REOPENED:
        return Question.EVENT  # it has an id of its own, which deliveries do not tell
    return _started_by_text(live, order)


def _is_late(live: Live, stamp: Stamp) -> bool:
    if live.order is None:
        return False
    # Ids tell which of two was first; where one has none, whole seconds are all there is.
    return stamp <= live.order if stamp.id else stamp.at < live.order.at


def _is_superseded(live: Live, order: Order) -> bool:
    """Tell whether it came before an edit that was acted upon already."""
    if order.said is None or order.issue is None or live.issue_time is None:
        return False
    is_behind = order.issue.updated_at < live.issue_time
    return is_behind and order.said != live.text and live.text == live.present


def _is_tie(live: Live, stamp: Stamp) -> bool:
    return live.order is not None and stamp.at == live.order.at


def _stopped(live: Live, order: Order) -> Change | Question | None:
    undoable = order.reason in (StopReason.CLOSED, StopReason.UNLABELED)
    if _is_tie(live, order.stamp) and live.is_running and undoable:
        # Something else happened in the same second, perhaps later.
        if order.now is None:
            return Question.ISSUE
        if _is_undone(order, order.now):
            return None
    stopped = replace(as_it_is(live), is_running=False, stopped_for=order.reason)
    return _acted(live, order, stopped)


def _is_undone(order: Order, now: IssueFacts) -> bool:
    if order.reason is StopReason.CLOSED:
        return now.is_open
    return order.subject.lower() in map(str.lower, now.labels)


def _started(live: Live, order: Order, trigger: str) -> Change | Question | None:
    now = order.now
    if now is not None and not now.is_open:
        return None
    if _is_tie(live, order.stamp) and order.said not in (None, live.text):
        # It came before or after an edit of the same second: whose text is the issue's now?
        if now is None:
            return Question.ISSUE
        if order.said != now.trigger:
            return _noted(live, order)
    started = replace(
        as_it_is(live),
        is_running=True,
        trigger=trigger,
        prompt=order.prompt,
        keeps_prompt=order.keeps_prompt or trigger == live.trigger,
        stopped_for=None,
    )
    return _acted(live, order, started)


def _started_by_text(live: Live, order: Order) -> Change | Question | None:
    issue, now = order.issue, order.now
    if issue is None or (not live.has_run and not live.is_ours):
        return None  # made by hand, to have a sandbox and no run
    is_behind = live.issue_time is not None and issue.updated_at < live.issue_time
    if now is None and (is_behind or _is_tie(live, order.stamp)):
        unsure = issue.trigger != live.text or not live.is_running
        if unsure:
            return Question.ISSUE
    if now is not None and not now.is_open:
        return None
    if issue.trigger != live.text and order.trigger is None:
        return _started(live, order, issue.trigger)
    # The text ran already, or something newer than the text did.
    return _wished(live, order) if order.happening in _WISHES else _noted(live, order)


def _wished(live: Live, order: Order) -> Change | Question | None:
    if live.stopped_for is None:
        return None
    return _started(live, order, order.trigger) if order.trigger else Question.EVENT


def _noted(live: Live, order: Order) -> Change | None:
    """Return the resource as it is, but with the order known to be done with."""
    if live.order is not None and order.stamp <= live.order:
        return None
    return replace(as_it_is(live), order=order.stamp)


def _acted(live: Live, order: Order, change: Change) -> Change:
    """Note when it was done, and with which text in mind."""
    latest = max(order.stamp, live.order) if live.order is not None else order.stamp
    return replace(change, order=latest, text=_text_in_mind(live, order))


def _text_in_mind(live: Live, order: Order) -> str | None:
    issue = order.issue
    if issue is None or (order.now is None and _is_tie(live, order.stamp)):
        return live.text
    if order.said is not None or order.act is Act.START:
        return issue.trigger  # whatever begins reads this text
    # A text that is younger than a stop may hold an edit that nobody acted upon.
    return issue.trigger if issue.updated_at <= order.stamp.at else live.text
